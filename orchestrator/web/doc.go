// Package web is the page of a server in the browser, at /ui/: what runs, why it failed and what it cost; units with
// their forms, flows, questions. Pages are whole without script; what lives is sent as parts of them.
//
//	Page.Routes    (page.go)    what a request needs, for the API that mounts the page
//	Page.serve     (page.go)    a request to its handler, an error to its page
//	frame          (frame.go)   what all pages have: who looks, how, and the menu
//	render         (render.go)  a page's parts by their templates
//	Page.live      (live.go)    the parts that have changed, as events
//	runsPage, …                 one page a file, from the Service to what its template shows
//
// Everything that units, clients and files say is shown as text. The browser keeps that: no script or style in a page
// is inline, and nothing comes from elsewhere.
//
// It must not know the store, engines or Echo.
//
// Its Go API may change with every release: see docs/stability.md.
package web
