package store

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api/fault"
)

// Question is what a run asks people. Run and Address name it as well as ID.
type Question struct {
	Seq        int64 // given by the store: it grows
	ID         string
	Run        string
	Unit       string // of the run
	Team       string // that owns the run
	MadeBy     string // of the run
	Address    string
	Kind       string // "": of a node of a flow
	Text       string
	Show, Form []byte // JSON; nil: nothing
	Answers    []byte // JSON
	Until      time.Time
	AskedAt    time.Time
	AnsweredAt time.Time // zero: it isn't
	Answer     []byte    // JSON
	AnsweredBy string    // the name of the token with which it was answered; "" for none
	Approvers  string    // who alone may answer it: a JSON list; "": who may see the run
	ClosedAt   time.Time // when nobody could answer any more; zero: it isn't closed
	Over       bool      // its run has ended
}

// Questions keeps what runs ask people.
type Questions struct{ core *core }

// Open stores a question with events, and returns it. If its run has asked under its
// Address before, it returns the question as it stands and stores nothing. The error is a
// NotFound fault if there is no such run, a Conflict fault if it has ended, and a TooLarge fault if a
// program has asked enough.
func (s *Questions) Open(ctx context.Context, q Question, events ...Event) (Question, error) {
	err := s.core.changeRun(ctx, "open question", q.Run, func(ctx context.Context, tx *transaction, run int64) error {
		const insert = `INSERT INTO questions (id, run, address, kind, text, show, form, answers, until, asked_at,
			approvers, answered_at, closed_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0) ON CONFLICT (run, address) DO NOTHING`
		n, err := tx.rows(ctx, insert, q.ID, run, q.Address, q.Kind, q.Text, q.Show, q.Form, q.Answers, nanos(q.Until),
			nanos(q.AskedAt), q.Approvers)
		if err != nil {
			return err
		}
		if n > 0 {
			return errors.Join(q.allowed(ctx, tx, run), addEvents(ctx, tx, run, events))
		}
		return scanQuestion(tx.QueryRowContext(ctx, selectQuestion+" WHERE questions.run = ? AND address = ?", run,
			q.Address), &q)
	})
	return q, err
}

// maxQuestions bounds how often the program of one run asks. A flow is bounded by its steps.
const maxQuestions = 500

// allowed returns a fault if the run has ended, or its program has asked too often, with this question.
func (q Question) allowed(ctx context.Context, tx *transaction, run int64) error {
	var over bool
	var asked int
	const state = "SELECT finished, (SELECT count(*) FROM questions WHERE run = runs.seq) FROM runs WHERE seq = ?"
	err := tx.QueryRowContext(ctx, state, run).Scan(&over, &asked)
	switch {
	case err != nil:
		return err
	case over:
		return fault.New(fault.Conflict, "the run has ended, nobody hears an answer any more").
			WithHint("ask before the program ends")
	case q.Kind != "" && asked > maxQuestions:
		return fault.New(fault.TooLarge, "this run has asked people %d questions already", maxQuestions).
			WithHint("ask for several things at once")
	}
	return nil
}

// Answer stores the answer to a question, with the name of the token with which it is given, "" for none, and events of
// its run. The first answer
// counts: the same again changes nothing, and another one is a Conflict fault, as is an answer
// to a question that is closed. A question that isn't there is a NotFound fault. The run of the
// question gets a key with its answer: if it has that already, nothing is stored. The error is a
// *Taken if the key has another fingerprint or run.
func (s *Questions) Answer(
	ctx context.Context, key Key, id string, answer []byte, by string, at time.Time, events ...Event,
) error {
	return s.core.change(ctx, "answer question", func(ctx context.Context, tx *transaction) error {
		q, err := questionIn(ctx, tx, id)
		if err != nil {
			return err
		}
		run, err := seqOf(ctx, tx, q.Run)
		if err != nil {
			return err
		}
		fresh, err := takeOnce(ctx, tx, key, q.Run, run)
		if !fresh || err != nil {
			tx.unchanged = !fresh
			return err
		}
		if again, err := q.takes(answer, at); again || err != nil {
			tx.unchanged = again
			return err
		}
		if err := tx.exec(ctx, "UPDATE questions SET answered_at = ?, answer = ?, answered_by = ? WHERE id = ?",
			nanos(at), answer, by, id); err != nil {
			return err
		}
		return addEvents(ctx, tx, run, events)
	})
}

// takes reports whether the question has this very answer, or why it takes none.
func (q Question) takes(answer []byte, at time.Time) (again bool, err error) {
	switch {
	case q.Answer != nil && bytes.Equal(q.Answer, answer):
		return true, nil
	case q.Answer != nil:
		return false, fault.New(fault.Conflict, "the question has another answer already").
			WithHint("the first answer counts")
	case q.Over, !q.ClosedAt.IsZero(), !q.Until.IsZero() && !at.Before(q.Until):
		return false, fault.New(fault.Conflict, "the question is open no more").
			WithHint("its time was up, or its run has ended")
	}
	return false, nil
}

// Close closes a question that isn't answered, with events of its run, and returns it
// as it stands then. One that is closed or answered stays as it is.
func (s *Questions) Close(ctx context.Context, id string, at time.Time, events ...Event) (q Question, err error) {
	err = s.core.change(ctx, "close question", func(ctx context.Context, tx *transaction) error {
		if q, err = questionIn(ctx, tx, id); err != nil || q.Answer != nil || !q.ClosedAt.IsZero() {
			return err
		}
		q.ClosedAt = at
		if err := tx.exec(ctx, "UPDATE questions SET closed_at = ? WHERE id = ?", nanos(at), id); err != nil {
			return err
		}
		run, err := seqOf(ctx, tx, q.Run)
		if err != nil {
			return err
		}
		return addEvents(ctx, tx, run, events)
	})
	return q, err
}

func questionIn(ctx context.Context, db rower, id string) (Question, error) {
	return find(ctx, db, scanQuestion, UnknownQuestion(id), selectQuestion+" WHERE questions.id = ?", id)
}

// UnknownQuestion is the NotFound fault of a question that there isn't.
func UnknownQuestion(id string) error {
	return fault.New(fault.NotFound, "there is no question %.64s", id)
}

// Get returns a question, or a NotFound fault.
func (s *Questions) Get(ctx context.Context, id string) (Question, error) {
	q, err := questionIn(ctx, s.core.readers, id)
	return q, s.core.explain(ctx, "read question", err)
}

// ApproversOf returns who alone may answer a question, as Question.Approvers has it; "" also of one that isn't there.
func (s *Questions) ApproversOf(ctx context.Context, id string) (approvers string, err error) {
	err = s.core.readers.QueryRowContext(ctx,
		"SELECT coalesce((SELECT approvers FROM questions WHERE id = ?), '')", id).Scan(&approvers)
	return approvers, s.core.explain(ctx, "read approvers", err)
}

// bytes implements large.
func (q Question) bytes() int {
	return len(q.Text) + len(q.Show) + len(q.Form) + len(q.Answers) + len(q.Answer) + len(q.Approvers)
}

// most implements large.
func (Question) most() int { return pageBytes }

// QuestionFilter selects questions.
type QuestionFilter struct {
	Run   string    // "": of all
	All   bool      // also those that can't be answered at a time
	At    time.Time // this one
	Owned Owned     // whose runs ask
	Named []string  // as whom who asks may be named as an approver: what names one is selected, too, whoever owns it
	Mine  bool      // only what names one
	After int64     // of Behind: only those behind that question; 0: from the oldest on
	Limit int       // at most 1000; 0 is 1000
}

// named is what selects the questions that name one as an approver.
func (f QuestionFilter) named() (c condition) {
	if len(f.Named) == 0 {
		c.add("0")
		return c
	}
	const each = "(SELECT value FROM json_each(iif(approvers = '', '[]', approvers)))"
	args := make([]any, len(f.Named))
	for i, name := range f.Named {
		args[i] = name
	}
	c.add("approvers <> ''")
	c.add("EXISTS (SELECT 1 FROM "+each+" WHERE value IN (?"+strings.Repeat(", ?", len(args)-1)+"))", args...)
	return c
}

func (f QuestionFilter) where() condition {
	var c, owned condition
	c.add("questions.seq > ?", f.After)
	if f.Run != "" {
		c.add("runs.id = ?", f.Run)
	}
	if !f.All {
		c.add("answered_at = 0 AND closed_at = 0 AND runs.finished = 0 AND (until = 0 OR until > ?)", nanos(f.At))
	}
	named := f.named()
	if f.Mine {
		c.add(named.and(), named.args...)
		return c
	}
	if f.Owned.narrow(&owned, "runs", false); len(owned.terms) > 0 {
		c.add("("+owned.and()+" OR "+named.and()+")", append(owned.args, named.args...)...)
	}
	return c
}

// List returns questions in their order, fewer than the limit where they are large.
func (s *Questions) List(ctx context.Context, f QuestionFilter) ([]Question, error) {
	var err error
	if f.After, err = s.core.seal.begin(inQuestions, f.After); err != nil {
		return nil, err
	}
	where := f.where()
	of := where.of(selectQuestion).then(" ORDER BY questions.seq LIMIT ?", atMost(f.Limit))
	return paged(ctx, s.core, "list questions", scanQuestion, of.text, of.args...)
}

// Behind returns where the page begins that goes on behind a row. It tells nothing of how many rows there are.
func (s *Questions) Behind(row Question) int64 { return s.core.seal.number(inQuestions, row.Seq) }

// OpenQuestions are the questions of a team's runs that can be answered.
type OpenQuestions struct {
	Team   string
	Count  int
	Oldest time.Time // when the first of them was asked
}

// OpenByTeam counts the questions that can be answered at a time, by the teams that have any.
func (s *Questions) OpenByTeam(ctx context.Context, at time.Time) ([]OpenQuestions, error) {
	where := QuestionFilter{At: at}.where()
	of := where.of("SELECT runs.team, count(*), min(asked_at) FROM questions JOIN runs ON runs.seq = questions.run").
		then(" GROUP BY runs.team")
	return list(ctx, s.core, "count open questions", func(row scanner, q *OpenQuestions) error {
		return row.Scan(&q.Team, &q.Count, stamp{&q.Oldest})
	}, of.text, of.args...)
}

const selectQuestion = `SELECT questions.seq, questions.id, runs.id, runs.unit, runs.team, runs.made_by, address,
	questions.kind, text, show, form, answers, until, asked_at, answered_at, answer, answered_by, closed_at,
	approvers, runs.finished
	FROM questions JOIN runs ON runs.seq = questions.run`

func scanQuestion(row scanner, q *Question) error {
	return row.Scan(&q.Seq, &q.ID, &q.Run, &q.Unit, &q.Team, &q.MadeBy, &q.Address, &q.Kind, &q.Text, &q.Show, &q.Form,
		&q.Answers, stamp{&q.Until}, stamp{&q.AskedAt},
		stamp{&q.AnsweredAt}, &q.Answer, &q.AnsweredBy, stamp{&q.ClosedAt}, &q.Approvers, &q.Over)
}
