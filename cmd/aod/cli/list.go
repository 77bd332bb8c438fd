package cli

import (
	"iter"

	"github.com/agent-on-demand/aod/cmd/aod/ui"
)

// List prints each thing of a list: as a JSON object on a line, or as show does it. It returns how
// many there were; where there is nothing, it notes none, unless that is "".
func List[T any](env *Env, all iter.Seq2[T, error], asJSON bool, none string, show func(T)) (n int, err error) {
	for thing, err := range all {
		if err != nil {
			return n, err
		}
		n++
		if !asJSON {
			show(thing)
		} else if err := env.Out.JSON(thing); err != nil {
			return n, err
		}
	}
	if n == 0 && none != "" {
		env.Note("%s", none)
	}
	return n, nil
}

// Table is List with a table, of which each thing is a row.
func Table[T any](
	env *Env, all iter.Seq2[T, error], asJSON bool, none string, titles []string, cells func(T) []string,
) error {
	table := ui.NewTable(env.Out, titles...)
	n, err := List(env, all, asJSON, none, func(thing T) { ui.Row(table, cells(thing)...) })
	if err != nil || asJSON || n == 0 && none != "" {
		return err
	}
	return table.Flush()
}

// All is a list that is known as a whole.
func All[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, thing := range list {
			if !yield(thing, nil) {
				return
			}
		}
	}
}

// First are the first things of a list.
func First[T any](n int, all iter.Seq2[T, error]) iter.Seq2[T, error] {
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

// Show prints a thing that was asked for: as JSON, or as show does it.
func Show[T any](env *Env, thing T, err error, asJSON bool, show func(T) error) error {
	switch {
	case err != nil:
		return err
	case asJSON:
		return env.Out.JSON(thing)
	}
	return show(thing)
}

// Judge prints what a check found, as JSON or as show does it. The exit code says whether something
// is wrong.
func Judge(env *Env, found any, failed, asJSON bool, show func()) error {
	if !asJSON {
		show()
	} else if err := env.Out.JSON(found); err != nil {
		return err
	}
	if failed {
		return ui.ExitFindings
	}
	return nil
}
