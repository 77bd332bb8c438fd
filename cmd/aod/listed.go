package main

import "iter"

// listed prints each thing of a list: as a JSON object on a line, or as show does it. It returns how
// many there were.
func listed[T any](out *output, all iter.Seq2[T, error], asJSON bool, show func(T)) (n int, err error) {
	for thing, err := range all {
		if err != nil {
			return n, err
		}
		n++
		if !asJSON {
			show(thing)
		} else if err := out.json(thing); err != nil {
			return n, err
		}
	}
	return n, nil
}
