package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/capsule/contract"
	"github.com/agent-on-demand/aod/capsule/contract/form"
	"github.com/agent-on-demand/aod/handoff"
	"github.com/agent-on-demand/aod/internal/access"
	"github.com/agent-on-demand/aod/internal/terminal"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
	"github.com/agent-on-demand/aod/orchestrator/questions"
)

// questionPages are the pages of what runs ask people.
type questionPages struct{ *Page }

func (p questionPages) addQuestions() {
	p.pageOf(access.Questions, "/ui/questions", p.questions)
	p.pageOf(access.Questions, "/ui/questions/{id}", p.question)
	p.handle("GET /ui/questions/{id}/files/", access.Questions, fileOf("questions", "files", p.svc.Questions.OpenFile))
	p.handle("POST /ui/questions/{id}", access.Approve, p.answer)
	p.read("GET /ui/runs/{id}/state/files/", fileOf("runs", "state/files", p.svc.Flows.OpenStateFile))
}

// askPage is how many questions a page lists, and askedShown how many of one run.
const askPage, askedShown = 50, 100

// askRow is a question in a list.
type askRow struct {
	api.Question
	Is   state
	Over string // why nobody can answer it any more, without an answer
	On   bool   // the one that the page is about
}

// Place is where a flow or a program asks.
func (r askRow) Place() string {
	if r.permits() {
		return "a permission"
	}
	return cmp.Or(map[api.QuestionKind]string{
		api.QuestionInput: "to know something", api.QuestionApproval: "an approval",
		api.QuestionAuth: "access elsewhere",
	}[r.Kind], r.Address)
}

// permits reports whether an agent asks to be let do something. What it shows are the names of its answers.
func (r askRow) permits() bool {
	return r.Kind == api.QuestionApproval && strings.HasPrefix(r.Address, "permission/")
}

// ByWhom are who alone may answer; "": who may see the run.
func (r askRow) ByWhom() string { return strings.Join(r.Approvers, ", ") }

// Given is the word for the answer that was given.
func (r askRow) Given() string {
	if r.Answered == nil {
		return ""
	}
	return r.labelOf(r.Answered.Action)
}

// askList is the open questions, the oldest first.
type askList struct {
	Rows  []askRow
	Next  int64   // after which there are more; 0: there are none
	Later bool    // it isn't the first page
	Kept  *askRow // the question that was just answered
}

func rowOfQuestion(r *request, q api.Question) askRow {
	q.Text = terminal.Plain(q.Text) // nobody is to agree to what they can't see
	row := askRow{Question: q, Is: state{"ask", "Waiting for a person"}}
	late := q.Until != nil && !r.frame.now.Before(*q.Until)
	switch {
	case q.Answered != nil && q.Answered.Action == handoff.Reject:
		row.Is = state{"off", "Answered"}
	case q.Answered != nil:
		row.Is = state{"ok", "Answered"}
	case late || q.ClosedAt != nil && q.Until != nil && !q.ClosedAt.Before(*q.Until):
		row.Is, row.Over = state{"late", "Timeout"}, "nobody has answered in time"
	case q.ClosedAt != nil:
		row.Is, row.Over = state{"off", "Closed"}, "its run ended before somebody answered"
	}
	return row
}

func (p questionPages) openQuestions(r *request) (askList, error) {
	after := numberOf(r, "after")
	page, err := p.svc.Questions.List(r.Context(), questions.Filter{After: after, Limit: askPage})
	list := askList{Later: after > 0}
	for _, q := range page.Questions {
		list.Rows = append(list.Rows, rowOfQuestion(r, q))
	}
	list.Next = behind(page.Next)
	return list, err
}

// questions is the inbox.
func (p questionPages) questions(r *request) (content, error) {
	list, err := p.openQuestions(r)
	if err != nil {
		return content{}, err
	}
	if id := r.URL.Query().Get("kept"); id != "" {
		if q, err := p.svc.Questions.Get(r.Context(), id); err == nil && q.Answered != nil {
			row := rowOfQuestion(r, q)
			list.Kept = &row
		}
	}
	return content{
		title: "Questions", section: "questions", follow: p.followed(r),
		parts: []part{{"head", "questions-head", nil}, {"list", "questions-list", list}},
	}, nil
}

// followed calls changed when a question that somebody sees may have changed; nil: they don't see what changes.
func (p questionPages) followed(r *request) func(ctx context.Context, changed func()) {
	if r.frame.May(string(access.Read)) {
		return p.followRoots
	}
	return nil
}

// askView is a question on its page.
type askView struct {
	askRow
	askList           // beside it
	Foreign bool      // whoever looks at it sees nothing else of its run
	Shows   []showed  // to look at
	Form    *unitForm // what is to be filled in; nil: nothing
	Answers []askAnswer
	Problem *httpwire.Problem // why an answer wasn't taken
	By      string
	Note    string
	Back    string      // "run": to its run, when it is answered
	Filled  [][2]string // of the answer's form
}

// askAnswer is a button.
type askAnswer struct {
	Value, Label string
	Main         bool
	Bare         bool // it goes without the form
}

// question is the page of one question.
func (p questionPages) question(r *request) (content, error) {
	q, err := p.svc.Questions.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return content{}, err
	}
	v := askView{By: whoAnswers(r.Request), Back: r.URL.Query().Get("back")}
	if field := formFieldOf(q); field != nil {
		v.Form = newAskForm(form.Fill(field, nil))
	}
	return p.questionContent(r, q, v)
}

// questionContent is the page of a question, with what somebody has filled in.
func (p questionPages) questionContent(r *request, q api.Question, v askView) (content, error) {
	v.askRow = rowOfQuestion(r, q)
	v.On = true
	var err error
	if v.askList, err = p.openQuestions(r); err != nil {
		return content{}, err
	}
	for i := range v.Rows {
		v.Rows[i].On = v.Rows[i].ID == q.ID
	}
	if !v.permits() {
		v.Shows = showsOf(q)
	}
	_, unseen := p.svc.Runs.Get(r.Context(), q.Run)
	v.Foreign = unseen != nil
	v.Answers = answersOf(v.askRow)
	if q.Answered != nil {
		v.Filled = filledIn(q.Answered.Form)
	}
	c := content{
		title: fault.Clip(v.Text, 80), section: "questions",
		parts: []part{{"head", "questions-head", nil}, {"question", "question", v}},
	}
	if v.Is.Class == "ask" {
		c.follow = p.followed(r)
	}
	return c, nil
}

func answersOf(r askRow) []askAnswer {
	var all []askAnswer
	for _, value := range r.Answers {
		all = append(all, askAnswer{
			Value: value, Label: r.labelOf(value), Main: value == handoff.Approve || value == handoff.Reply,
			Bare: !takesForm(r.Question, value),
		})
	}
	return all
}

// labelOf is what stands on the button of an answer.
func (r askRow) labelOf(answer string) string {
	if r.permits() {
		if name := textIn(r.Show, answer); name != "" {
			return terminal.Plain(fault.OneLine(name))
		}
	}
	first, n := utf8.DecodeRuneInString(answer)
	return strings.ToUpper(string(first)) + answer[n:]
}

// takesForm reports whether an answer comes with the question's form: who says no to a program fills in nothing.
func takesForm(q api.Question, answer string) bool {
	return q.Form != nil && (q.Kind == "" || answer != handoff.Reject)
}

// formFieldOf is what a question has to be filled in; nil: nothing.
func formFieldOf(q api.Question) *form.Field {
	if q.Form == nil {
		return nil
	}
	compiled, _ := contract.Compile(q.Form)
	if compiled == nil {
		return nil
	}
	field := compiled.Form()
	byNames(field)
	return field
}

// byNames has files be given by their names: an answer has none of its own.
func byNames(f *form.Field) {
	if f.Kind == form.File {
		f.Kind = form.Text
	}
	for _, part := range f.Fields {
		byNames(part)
	}
	if f.Item != nil {
		byNames(f.Item)
	}
}

// newAskForm is the form of a question, which is shown as that of a unit is.
func newAskForm(root *form.Control) *unitForm {
	f := &unitForm{Root: root, fields: root.Kind == form.Object}
	f.open()
	return f
}

// answer gives the answer to a question, and leads to the inbox or to the question's run.
func (p questionPages) answer(w http.ResponseWriter, r *request) error {
	fields, err := fieldsOf(w, r)
	if err != nil {
		return err
	}
	q, err := p.svc.Questions.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	v := askView{
		By: strings.TrimSpace(fields.Get("by")), Back: fields.Get("back"),
		Note: strings.TrimSpace(plainEnds(fields.Get("note"))),
	}
	given := api.Answer{Action: fields.Get("action"), By: v.By, Note: v.Note}
	var found []fault.Finding
	if field := formFieldOf(q); field != nil {
		var root *form.Control
		fields = renamed(fields)
		drop(fields)
		root, given.Form, found = form.Read(field, form.Posted{Values: fields})
		if v.Form = newAskForm(root); v.Form.rows(fields) {
			return p.showQuestion(w, r, q, http.StatusOK, v)
		}
	}
	if !takesForm(q, given.Action) {
		given.Form, found = nil, nil
	}
	if err := p.give(r.Context(), q.ID, given, found); err != nil {
		return p.notTaken(w, r, q.ID, v, err)
	}
	keepWho(w, r, v.By)
	if v.Back == "run" {
		redirect(w, "../runs/"+q.Run)
		return nil
	}
	redirect(w, "../questions?kept="+url.QueryEscape(q.ID))
	return nil
}

// renamed are the values of a form by the names that its controls have outside the page.
func renamed(fields url.Values) url.Values {
	all := url.Values{}
	for name, values := range fields {
		all[unnamed.Replace(name)] = values
	}
	return all
}

// give has an answer stored that could be read.
func (p questionPages) give(ctx context.Context, id string, given api.Answer, found []fault.Finding) error {
	if len(found) > 0 {
		return fault.New(fault.Input, "what is filled in can't be read").WithFindings(found)
	}
	return p.svc.Questions.Answer(ctx, id, given)
}

// notTaken shows the question again with what was filled in, and why it wasn't taken: something in it is wrong, or
// somebody else was quicker.
func (p questionPages) notTaken(w http.ResponseWriter, r *request, id string, v askView, why error) error {
	if !fault.Is(why, fault.Input) && !fault.Is(why, fault.Conflict) {
		return why
	}
	q, err := p.svc.Questions.Get(r.Context(), id) // as it is by now
	if err != nil {
		return err
	}
	problem := httpwire.ProblemOf(why)
	if v.Form != nil && len(problem.Findings) > 0 {
		v.Form.focus = contract.Place(v.Form.Root, problem.Findings)
		problem.Findings, problem.Hint = nil, "" // they stand at their fields
	}
	v.Problem = &problem
	return p.showQuestion(w, r, q, problem.Status, v)
}

// showQuestion shows a question with what was filled in.
func (p questionPages) showQuestion(w http.ResponseWriter, r *request, q api.Question, status int, v askView) error {
	shows, err := p.questionContent(r, q, v)
	if err != nil {
		return err
	}
	p.show(w, r, status, shows)
	return nil
}

// whoCookie keeps who somebody says they are when they answer.
const whoCookie = "aod_by"

func whoAnswers(r *http.Request) string {
	cookie, err := r.Cookie(whoCookie)
	if err != nil {
		return ""
	}
	who, err := url.QueryUnescape(cookie.Value)
	if err != nil {
		return ""
	}
	return fault.Cut(who, mostWho)
}

// mostWho is how long a name may be that is kept.
const mostWho = 200

func keepWho(w http.ResponseWriter, r *request, who string) {
	const year = 365 * 24 * 60 * 60
	if who == "" || len(who) > mostWho {
		return
	}
	//nolint:gosec // it is Secure where the page came by TLS
	http.SetCookie(w, &http.Cookie{
		Name: whoCookie, Value: url.QueryEscape(who), MaxAge: year, Secure: overTLS(r), HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	})
}

// runAsks is what a run has asked, with the answers.
type runAsks struct {
	Rows []askRow
	More bool
}

// asksOf lists what a run has asked; without questions it is nil, and nothing is shown.
func (p questionPages) asksOf(r *request, run string) ([]part, error) {
	page, err := p.svc.Questions.List(r.Context(), questions.Filter{Run: run, All: true, Limit: askedShown})
	if err != nil || len(page.Questions) == 0 {
		return nil, err
	}
	asks := runAsks{More: page.Next != nil}
	for _, q := range page.Questions {
		asks.Rows = append(asks.Rows, rowOfQuestion(r, q))
	}
	return []part{{"asks", "run-asks", asks}}, nil
}
