package main

import (
	"iter"
)

// listed prints each thing of a list: as a JSON object on a line, or as show does it. It returns how
// many there were; where there is nothing, it notes none, unless that is "".
func listed[T any](a *app, all iter.Seq2[T, error], asJSON bool, none string, show func(T)) (n int, err error) {
	for thing, err := range all {
		if err != nil {
			return n, err
		}
		n++
		if !asJSON {
			show(thing)
		} else if err := a.stdout.json(thing); err != nil {
			return n, err
		}
	}
	if n == 0 && none != "" {
		a.note("%s", none)
	}
	return n, nil
}

// tabled is listed with a table, of which each thing is a row.
func tabled[T any](
	a *app, all iter.Seq2[T, error], asJSON bool, none string, titles []string, cells func(T) []string,
) error {
	table := newTable(a.stdout, titles...)
	n, err := listed(a, all, asJSON, none, func(thing T) { row(table, cells(thing)...) })
	if err != nil || asJSON || n == 0 && none != "" {
		return err
	}
	return table.Flush()
}

// allOf is a list that is known as a whole.
func allOf[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, thing := range list {
			if !yield(thing, nil) {
				return
			}
		}
	}
}

// firstOf are the first things of a list.
func firstOf[T any](n int, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		left := n
		if left <= 0 {
			return
		}
		for thing, err := range all {
			if left--; !yield(thing, err) || left == 0 {
				return
			}
		}
	}
}

// shown prints a thing that was asked for: as JSON, or as show does it.
func shown[T any](a *app, thing T, err error, asJSON bool, show func(T) error) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return a.stdout.json(thing)
	}
	return show(thing)
}

// judged prints what a check found, as JSON or as show does it. The exit code says whether something
// is wrong.
func (a *app) judged(found any, failed, asJSON bool, show func()) error {
	if !asJSON {
		show()
	} else if err := a.stdout.json(found); err != nil {
		return err
	}
	if failed {
		return exitFindings
	}
	return nil
}
