package store

import (
	"context"
	"database/sql"
)

// transaction is a transaction of the writer.
type transaction struct {
	*sql.Tx
	statements *statements
	pushed     bool // there are new deliveries
	unchanged  bool // the last change was one already: the audit has it
}

// ExecContext works as sql.Tx's, with a prepared statement if there is one.
func (t *transaction) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if stmt := t.statements.of(query); stmt != nil {
		return t.StmtContext(ctx, stmt).ExecContext(ctx, args...)
	}
	return t.Tx.ExecContext(ctx, query, args...)
}

// exec executes a statement that may change nothing.
func (t *transaction) exec(ctx context.Context, query string, args ...any) error {
	_, err := t.ExecContext(ctx, query, args...)
	return err
}

// rows executes a statement, and returns how many rows it has changed.
func (t *transaction) rows(ctx context.Context, query string, args ...any) (int64, error) {
	done, err := t.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// change executes a statement. Where that has changed no row, the error is none.
func (t *transaction) change(ctx context.Context, none error, query string, args ...any) error {
	n, err := t.rows(ctx, query, args...)
	if err == nil && n == 0 {
		err = none
	}
	return err
}

// QueryRowContext works as sql.Tx's, with a prepared statement if there is one.
func (t *transaction) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if stmt := t.statements.of(query); stmt != nil {
		return t.StmtContext(ctx, stmt).QueryRowContext(ctx, args...)
	}
	return t.Tx.QueryRowContext(ctx, query, args...) //nolint:gosec // queries are constants of this package
}

// statements are the prepared statements of the writer's one connection: to prepare an
// insert with its indexes, or an update with its triggers, takes longer than to execute it.
// They end with the connection.
type statements struct {
	known map[string]*sql.Stmt // nil: it can't be prepared
	news  []string             // requested, and not prepared yet
}

// of returns a prepared statement, or nil, and then notes that it is wanted.
func (s *statements) of(query string) *sql.Stmt {
	stmt, known := s.known[query]
	if !known {
		s.news = append(s.news, query)
	}
	return stmt
}

// prepare prepares the requested statements, between two transactions. A statement that
// can't be prepared is executed unprepared, as before.
func (s *statements) prepare(ctx context.Context, db *sql.DB) {
	for _, query := range s.news {
		if _, known := s.known[query]; known {
			continue
		}
		stmt, err := db.PrepareContext(ctx, query)
		if err != nil {
			stmt = nil
		}
		s.known[query] = stmt
	}
	s.news = nil
}
