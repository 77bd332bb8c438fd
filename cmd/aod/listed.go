package main

import "iter"

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
