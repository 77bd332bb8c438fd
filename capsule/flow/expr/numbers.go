package expr

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

var errOverflow = errors.New("the result isn't a whole number below 2^63")

// integer returns a whole number.
func integer(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int64(v), true
		}
	}
	return 0, false
}

// number returns a number as one of Go's two.
func number(value any) (whole int64, broken float64, isWhole, ok bool) {
	switch v := value.(type) {
	case int64:
		return v, float64(v), true, true
	case int:
		return int64(v), float64(v), true, true
	case float64:
		return 0, v, false, true
	case uint64:
		return 0, float64(v), false, true
	}
	return 0, 0, false, false
}

// arithmetic is +, - and * without silent overflow, and with a bound for texts.
func arithmetic(m *meter, args []any) (any, error) {
	operator, a, b := args[0].(string), args[1], args[2]
	s, left := a.(string)
	t, right := b.(string)
	if left && right && operator == "+" {
		if err := m.text(len(s) + len(t)); err != nil {
			return nil, err
		}
		return s + t, nil
	}
	i, x, whole1, ok1 := number(a)
	j, y, whole2, ok2 := number(b)
	switch {
	case !ok1 || !ok2:
		return nil, fmt.Errorf("%s expects %s, got %s and %s", operator, operands(operator), typeOf(a), typeOf(b))
	case whole1 && whole2:
		return wholeArithmetic(operator, i, j)
	}
	switch operator {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	}
	return x * y, nil
}

func operands(operator string) string {
	if operator == "+" {
		return "two numbers or two texts"
	}
	return "two numbers"
}

func wholeArithmetic(operator string, i, j int64) (any, error) {
	var result int64
	overflow := false
	switch operator {
	case "+":
		result = i + j
		overflow = (result > i) != (j > 0)
	case "-":
		result = i - j
		overflow = (result < i) != (j > 0)
	default:
		result = i * j
		overflow = i != 0 && (result/i != j || i == -1 && j == math.MinInt64)
	}
	if overflow {
		return nil, errOverflow
	}
	return int(result), nil
}

// numberOnly hands a number on: what a sum is made of.
func numberOnly(m *meter, args []any) (any, error) {
	if _, _, _, ok := number(args[0]); !ok {
		return nil, fmt.Errorf("sum expects numbers, got %s", typeOf(args[0]))
	}
	return args[0], m.grow(1)
}

// numbers are the arguments of min and its like: numbers, or one list of them.
func numbers(m *meter, name string, args []any) ([]any, error) {
	if len(args) == 1 {
		if value, err := m.plain(args[0]); err != nil {
			return nil, err
		} else if list, ok := value.([]any); ok {
			args = list
		}
	}
	for _, item := range args {
		if _, _, _, ok := number(item); !ok {
			return nil, fmt.Errorf("%s expects numbers, or a list of them, got %s", name, typeOf(item))
		}
	}
	return args, m.grow(len(args))
}

func compare(a, b any) int {
	i, x, whole1, _ := number(a)
	j, y, whole2, _ := number(b)
	switch {
	case whole1 && whole2 && i < j, (!whole1 || !whole2) && x < y:
		return -1
	case whole1 && whole2 && i > j, (!whole1 || !whole2) && x > y:
		return 1
	}
	return 0
}

// ofNumbers makes something of numbers, and nothing of none.
func ofNumbers(name string, give func(list []any) any) func(m *meter, args []any) (any, error) {
	return func(m *meter, args []any) (any, error) {
		list, err := numbers(m, name, args)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		return give(list), nil
	}
}

func least(list []any) any { return slices.MinFunc(list, compare) }
func most(list []any) any  { return slices.MaxFunc(list, compare) }

func mean(list []any) any {
	sum := 0.0
	for _, item := range list {
		_, x, _, _ := number(item)
		sum += x
	}
	return sum / float64(len(list))
}

func median(list []any) any {
	sorted := slices.SortedFunc(slices.Values(list), compare)
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	_, high, _, _ := number(sorted[middle])
	_, low, _, _ := number(sorted[middle-1])
	return (low + high) / 2
}
