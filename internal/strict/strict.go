// Package strict reads the JSON bodies and the parameters of requests, more
// strictly than encoding/json and net/url do.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Decode reads a request's body into target, and is stricter than
// encoding/json: an unknown or doubled name, a missing one, a name in other
// letter case, a null, and more text after the value are all refused, with
// place and offset. A plan that was misread would drive a car in vain.
func Decode(data []byte, target any) error {
	s := &shape{decoder: json.NewDecoder(bytes.NewReader(data))}
	s.decoder.UseNumber() // a number's size is json.Unmarshal's to check
	if err := s.value(reflect.TypeOf(target).Elem(), "body"); err != nil {
		return badBody(err, s.decoder.InputOffset())
	}
	if _, err := s.decoder.Token(); !errors.Is(err, io.EOF) {
		return badBody(errors.New("more text after the JSON value"), s.decoder.InputOffset())
	}
	if err := json.Unmarshal(data, target); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return badBody(fmt.Errorf("body.%s: a JSON %s does not fit", kind.Field, kind.Value), kind.Offset)
		}
		return badBody(err, s.decoder.InputOffset())
	}
	return nil
}

func badBody(err error, offset int64) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the JSON value ends too early")
	}
	return &wire.Error{
		Code:    wire.CodeBadRequest,
		Message: fmt.Sprintf("%s, at byte %d", err, offset),
		Cure:    "see openapi.yaml for what this call takes",
	}
}

// shape walks a JSON text beside the Go type that it is to fill.
type shape struct{ decoder *json.Decoder }

func (s *shape) value(t reflect.Type, path string) error {
	token, err := s.decoder.Token()
	if err != nil {
		return err
	}
	if token == nil {
		return fmt.Errorf("%s: null is not taken; leave out what is unknown", path)
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	delim, nested := token.(json.Delim)
	switch {
	case !nested:
		return nil // a scalar's type is json.Unmarshal's to check
	case delim == '{' && t.Kind() == reflect.Struct:
		return s.object(t, path)
	case delim == '{' && t.Kind() == reflect.Map:
		return s.table(t, path)
	case delim == '[' && t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return s.list(t, path)
	}
	return fmt.Errorf("%s: a JSON %s does not fit", path, map[json.Delim]string{'{': "object", '[': "array"}[delim])
}

func (s *shape) object(t reflect.Type, path string) error {
	missing := map[string]bool{}
	fields := map[string]reflect.Type{}
	fieldsOf(t, fields, missing)
	seen := map[string]bool{}
	for s.decoder.More() {
		name, err := s.name(seen, path)
		if err != nil {
			return err
		}
		kind, known := fields[name]
		if !known {
			return fmt.Errorf("%s: unknown name %.80q", path, name)
		}
		delete(missing, name)
		if err := s.value(kind, path+"."+name); err != nil {
			return err
		}
	}
	if _, err := s.decoder.Token(); err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s: %s missing", path, strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
	return nil
}

func (s *shape) table(t reflect.Type, path string) error {
	seen := map[string]bool{}
	for s.decoder.More() {
		name, err := s.name(seen, path)
		if err != nil {
			return err
		}
		if err := s.value(t.Elem(), fmt.Sprintf("%s[%.80q]", path, name)); err != nil {
			return err
		}
	}
	_, err := s.decoder.Token()
	return err
}

func (s *shape) list(t reflect.Type, path string) error {
	for i := 0; s.decoder.More(); i++ {
		if err := s.value(t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	_, err := s.decoder.Token()
	return err
}

// name reads an object's next name and refuses one that was there before.
func (s *shape) name(seen map[string]bool, path string) (string, error) {
	token, err := s.decoder.Token()
	if err != nil {
		return "", err
	}
	name, ok := token.(string)
	if !ok {
		return "", fmt.Errorf("%s: a name was expected", path)
	}
	if seen[name] {
		return "", fmt.Errorf("%s: name %.80q is there twice", path, name)
	}
	seen[name] = true
	return name, nil
}

// fieldsOf collects a struct's JSON names, and those that must be there: all
// that the wire package does not mark as omitted when empty.
func fieldsOf(t reflect.Type, fields map[string]reflect.Type, required map[string]bool) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			fieldsOf(field.Type, fields, required)
			continue
		}
		fields[name] = field.Type
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			required[name] = true
		}
	}
}
