package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Encode writes a body of the API as JSON, with an empty list or table where Go
// would write null for a nil one: in this API nothing is ever null.
func Encode(body any) ([]byte, error) {
	data, err := json.Marshal(whole(reflect.ValueOf(body)).Interface())
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", body, err)
	}
	return data, nil
}

// whole returns a copy of v in which no slice and no map is nil. What is left
// out when empty (omitempty) stays left out, because it is empty either way.
func whole(v reflect.Value) reflect.Value {
	if custom(v.Type()) {
		return v
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(whole(v.Elem()))
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			out.Field(i).Set(whole(v.Field(i)))
		}
		return out
	case reflect.Slice:
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(whole(v.Index(i)))
		}
		return out
	case reflect.Map:
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for _, key := range v.MapKeys() {
			out.SetMapIndex(key, whole(v.MapIndex(key)))
		}
		return out
	}
	return v
}

var (
	rawType       = reflect.TypeFor[json.RawMessage]()
	marshalerType = reflect.TypeFor[json.Marshaler]()
)

// custom reports whether a type encodes itself, or is bytes, and so is to be left alone.
func custom(t reflect.Type) bool {
	return t == rawType || t.Implements(marshalerType) || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}
