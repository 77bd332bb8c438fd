// Finds the pages that have all the words which somebody types: those with one in their title
// first. The index is a file beside this one; nothing is asked of any server.
(function () {
  "use strict";
  var field = document.getElementById("search"), found = document.getElementById("found");
  var root = document.currentScript.src.replace(/search\.js$/, "");
  var most = 12, around = 60;

  function matches(words) {
    var all = [];
    pages.forEach(function (page) {
      var title = page.title.toLowerCase(), text = page.text.toLowerCase(), rank = 0, at = -1;
      for (var i = 0; i < words.length; i++) {
        var inTitle = title.indexOf(words[i]) >= 0, place = text.indexOf(words[i]);
        if (!inTitle && place < 0) return;
        rank += inTitle ? 100 : 0;
        rank += Math.min(text.split(words[i]).length - 1, 20);
        if (at < 0) at = place;
      }
      all.push({ page: page, rank: rank, at: Math.max(at, 0) });
    });
    return all.sort(function (a, b) { return b.rank - a.rank; }).slice(0, most);
  }

  function show(match) {
    var item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("p");
    var begin = Math.max(match.at - around, 0);
    link.href = root + match.page.url;
    link.textContent = match.page.title;
    text.textContent = match.page.text.slice(begin, match.at + around).replace(/\s+/g, " ");
    item.append(link, text);
    found.append(item);
  }

  field.addEventListener("input", function () {
    var words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.replaceChildren();
    if (words.length) matches(words).forEach(show);
    found.hidden = !found.childElementCount;
  });
})();
