package influx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// member is one name and value of a JSON object, as they stand in the text.
type member struct{ key, value []byte }

var errNotObject = errors.New("not a JSON object")

// members adds an object's own members to dst. What is nested in them is
// passed over and only balanced, not checked.
func members(dst []member, text []byte) ([]member, error) {
	s := cursor{text: text}
	if !s.take('{') {
		return dst, errNotObject
	}
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') {
			return dst, s.bad("a comma")
		}
		s.space()
		key, ok := s.quoted()
		if !ok {
			return dst, s.bad("a name")
		}
		if !s.take(':') {
			return dst, s.bad("a colon")
		}
		s.space()
		value, ok := s.value()
		if !ok {
			return dst, s.bad("a value")
		}
		dst = append(dst, member{key: key[1 : len(key)-1], value: value})
	}
	if s.space(); s.at != len(text) {
		return dst, s.bad("the end")
	}
	return dst, nil
}

// cursor is a place in a text of JSON.
type cursor struct {
	text []byte
	at   int
}

func (s *cursor) bad(want string) error {
	return fmt.Errorf("%w: %s is expected at byte %d of %.80q", errNotObject, want, s.at, s.text)
}

func (s *cursor) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// take passes over one character, and white space before it, if it is next.
func (s *cursor) take(c byte) bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

// quoted passes over a string and gives it with its quotes.
func (s *cursor) quoted() ([]byte, bool) {
	start := s.at
	if s.at >= len(s.text) || s.text[s.at] != '"' {
		return nil, false
	}
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return s.text[start:s.at], true
		case c == '\\':
			s.at++
		case c < ' ':
			return nil, false
		}
	}
	return nil, false
}

// value passes over one value.
func (s *cursor) value() ([]byte, bool) {
	start := s.at
	if s.at >= len(s.text) {
		return nil, false
	}
	switch c := s.text[s.at]; {
	case c == '"':
		return s.quoted()
	case c == '{' || c == '[':
		return s.nested()
	}
	if c := s.text[s.at]; 'a' <= c && c <= 'z' {
		for s.at < len(s.text) && 'a' <= s.text[s.at] && s.text[s.at] <= 'z' {
			s.at++
		}
		word := string(s.text[start:s.at])
		return s.text[start:s.at], word == "true" || word == "false" || word == "null"
	}
	for s.at < len(s.text) && numeric(s.text[s.at]) {
		s.at++
	}
	v := s.text[start:s.at]
	return v, len(v) > 0 && (v[0] == '-' || '0' <= v[0] && v[0] <= '9')
}

// numeric: the character can be part of a number.
func numeric(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// nested passes over an object or array.
func (s *cursor) nested() ([]byte, bool) {
	start := s.at
	depth := 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.at++
				return s.text[start:s.at], true
			}
		case '"':
			if _, ok := s.quoted(); !ok {
				return nil, false
			}
			continue
		}
		s.at++
	}
	return nil, false
}

func (m member) null() bool { return string(m.value) == "null" }

// text is the value of a string; a number or truth value is its own text.
func (m member) text() (string, error) {
	switch {
	case len(m.value) == 0 || m.value[0] == '{' || m.value[0] == '[':
		return "", fmt.Errorf("%.40q is not a text", m.value)
	case m.null():
		return "", nil
	case m.value[0] != '"':
		return string(m.value), nil
	case bytes.IndexByte(m.value, '\\') < 0:
		return string(m.value[1 : len(m.value)-1]), nil
	}
	var s string
	if err := json.Unmarshal(m.value, &s); err != nil {
		return "", err
	}
	return s, nil
}

// small is the value of a number that an int holds everywhere.
func (m member) small() (int, error) {
	n, err := strconv.ParseInt(string(m.value), 10, 32)
	return int(n), err
}

// integer reports whether a whole number fits 64 bits with a sign: InfluxDB 1.x
// has no unsigned type.
func (m member) integer() (fits bool, err error) {
	digits := bytes.TrimPrefix(m.value, []byte("-"))
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false, fmt.Errorf("%.40q is not a whole number", m.value)
		}
	}
	if len(digits) == 0 {
		return false, fmt.Errorf("%.40q is not a whole number", m.value)
	}
	if len(digits) < 19 {
		return true, nil
	}
	_, err = strconv.ParseInt(string(m.value), 10, 64)
	return err == nil, nil
}

// float checks that a number is one, and finite.
func (m member) float() error {
	x, err := strconv.ParseFloat(string(m.value), 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return fmt.Errorf("%.40q is not a number", m.value)
	}
	return nil
}
