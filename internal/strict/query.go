package strict

import (
	"net/url"
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Query reads a request's parameters, and refuses those that are not allowed or that
// come twice.
func Query(raw string, allowed []string) (url.Values, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, wire.Errorf(wire.CodeBadRequest, "query: %s", err)
	}
	for name, list := range values {
		if !slices.Contains(allowed, name) {
			return nil, wire.Errorf(wire.CodeBadRequest, "query: unknown parameter %.80q", name)
		}
		if len(list) > 1 {
			return nil, wire.Errorf(wire.CodeBadRequest, "query: parameter %q is there %d times", name, len(list))
		}
	}
	return values, nil
}
