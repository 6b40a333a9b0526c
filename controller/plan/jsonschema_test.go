package plan

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/test/schemas"
)

// editorSchema is the JSON Schema of campaigns, for editors.
var editorSchema = filepath.Join("..", "..", "campaigns", "campaign.schema.json")

type keywords = schemas.Keywords

// writer turns rules into JSON Schema. What one rule alone cannot see (which
// keys go together, which names are defined) stays with the reader.
type writer struct {
	t *testing.T
	// part is set for a part that is laid over a section: nothing is required.
	part bool
}

func (w writer) of(path string, r rule) keywords {
	switch r := r.(type) {
	case object:
		return w.object(path, r)
	case table:
		out := keywords{"type": "object", "propertyNames": name(r.name, r.reserved)}
		if out["additionalProperties"] = w.of(path+".*", r.row); !w.part {
			out["minProperties"] = 1
		}
		return out
	case list:
		return keywords{"type": "array", "minItems": r.least, "maxItems": r.most, "uniqueItems": r.distinct,
			"items": writer{t: w.t}.of(path, r.item)}
	case number:
		return r.keywords()
	case numberChoice:
		return keywords{"enum": r.values, "unit": r.unit}
	case choice:
		return keywords{"enum": r}
	case toggle:
		return keywords{"enum": []any{true, false, "on", "off"}}
	case boolean:
		return keywords{"type": "boolean"}
	case text:
		return keywords{"type": "string", "minLength": 1, "maxLength": r.most}
	case pattern:
		return keywords{"type": "string", "pattern": r.form.String()}
	case reference:
		return keywords{"type": "string"}
	case checked:
		out := w.of(path, r.rule)
		for k, v := range r.form {
			out[k] = v
		}
		return out
	case anything:
		return w.elsewhere(path)
	}
	w.t.Fatalf("%s: a rule of type %T has no JSON Schema", path, r)
	return nil
}

func (r number) keywords() keywords {
	out := keywords{"type": "number", "maximum": r.most, "unit": r.unit}
	if r.whole {
		out["type"] = "integer"
	}
	if r.above {
		out["exclusiveMinimum"] = r.least
	} else {
		out["minimum"] = r.least
	}
	return out
}

func name(form *regexp.Regexp, reserved []string) keywords {
	out := keywords{"pattern": form.String()}
	if len(reserved) > 0 {
		out["not"] = keywords{"enum": reserved}
	}
	return out
}

func (w writer) object(path string, o object) keywords {
	properties, needed := keywords{}, []string{}
	for _, f := range o.fields {
		at := strings.TrimPrefix(path+"."+f.key, ".")
		p := w.of(at, f.rule)
		if p["unit"] == "" {
			delete(p, "unit")
		}
		if p["description"] = f.meaning; f.meaning == "" {
			w.t.Errorf("%s: nothing says what it means", at)
		}
		if unit, there := p["unit"]; there {
			p["description"] = fmt.Sprintf("%s (%s)", f.meaning, unit)
		}
		if f.standard != nil {
			p["default"] = f.standard
		}
		if of, one := p["type"].(string); one && w.part && !f.required && p["enum"] == nil {
			p["type"] = []string{of, "null"} // which leaves the key out
		}
		if properties[f.key] = p; f.required && !w.part {
			needed = append(needed, f.key)
		}
	}
	out := keywords{"type": "object", "additionalProperties": false, "properties": properties}
	if len(needed) > 0 {
		out["required"] = needed
	}
	return out
}

// elsewhere is what `anything` stands for.
func (w writer) elsewhere(path string) keywords {
	switch path {
	case "asks":
		return keywords{"type": "array", "minItems": 1, "uniqueItems": true, "items": keywords{"type": "string"}}
	case "factors":
		return keywords{"type": "object", "maxProperties": maxFactors, "additionalProperties": ref("factor"),
			"propertyNames": name(regexp.MustCompile(wordForm), reservedFactors)}
	case "design":
		return w.of(path, schema{}.design())
	case "design.balance", "scales.*.design.balance":
		return ref("balance")
	case "scales.*.trial":
		return w.partOfTrial(path)
	case "scales.*.design":
		return writer{w.t, true}.of(path, schema{}.design())
	case "scales.*.factors":
		return keywords{"type": "object", "additionalProperties": keywords{"type": "object",
			"additionalProperties": false,
			"properties": keywords{
				"key":    keywords{"type": "string", "description": "The key of a trial that the levels set, dotted"},
				"levels": keywords{"type": []string{"array", "object"}, "description": "Levels laid over the factor's"},
				"only":   keywords{"type": "array", "description": "Labels of the levels that stay"},
			}}}
	case "factors.*.levels":
		return keywords{"type": []string{"array", "object"}, "minItems": 1, "maxItems": maxLevels,
			"minProperties": 1, "maxProperties": maxLevels, "propertyNames": keywords{"pattern": labelForm}}
	}
	w.t.Fatalf("%s is checked elsewhere and has no JSON Schema", path)
	return nil
}

// partOfTrial is what a scale lays over the section trial. Where a key means the
// same in both, it is the section's.
func (w writer) partOfTrial(path string) keywords {
	whole := schema{}.trial()
	whole.fields = slices.DeleteFunc(whole.fields, func(f field) bool { return f.key == "radio" })
	out, same := writer{w.t, true}.of(path, whole), w.of(path, whole)["properties"].(keywords)
	for k, p := range out["properties"].(keywords) {
		if reflect.DeepEqual(p, same[k]) {
			out["properties"].(keywords)[k] = ref("trial/properties/" + k)
		}
	}
	return out
}

func ref(definition string) keywords { return keywords{"$ref": "#/$defs/" + definition} }

// key is a dotted key of a trial, which a factor or a balance may set.
type key struct {
	path string // with the flow's name as *
	ref  keywords
}

// keysOfTrial are all keys that a factor may set.
func keysOfTrial(o object, path, at string) []key {
	var out []key
	for _, f := range o.fields {
		k := key{strings.TrimPrefix(path+"."+f.key, "."), ref(at + "/properties/" + f.key)}
		out = append(out, k)
		switch r := f.rule.(type) {
		case object:
			out = append(out, keysOfTrial(r, k.path, at+"/properties/"+f.key)...)
		case table:
			out = append(out, key{k.path + ".*", ref("flow")})
			out = append(out, keysOfTrial(r.row.(object), k.path+".*", "flow")...)
		}
	}
	return out
}

// matches is the condition on a text to be the key.
func (k key) matches() keywords {
	if !strings.Contains(k.path, "*") {
		return keywords{"const": k.path}
	}
	return keywords{"pattern": k.pattern()}
}

func (k key) pattern() string {
	flow := strings.Trim(wordForm, "^$")
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(k.path), `\*`, flow) + "$"
}

// factor is a factor: what its levels may be follows from its key.
func (w writer) factor(keys []key) keywords {
	out := w.of("factors.*", factorRule())
	var paths []string
	var patterns []keywords
	var cases []keywords
	for _, k := range keys {
		if c := k.matches(); c["const"] != nil {
			paths = append(paths, k.path)
		} else {
			patterns = append(patterns, c)
		}
		cases = append(cases, keywords{"if": keywords{"properties": keywords{"key": k.matches()}},
			"then": keywords{"properties": keywords{"levels": keywords{"items": k.ref,
				"additionalProperties": k.ref}}}})
	}
	out["if"], out["then"] = keywords{"required": []string{"key"}}, keywords{"allOf": cases}
	partial := keywords{"type": "object", "additionalProperties": ref("level")}
	out["else"] = keywords{"properties": keywords{"levels": partial}}
	out["properties"].(keywords)["key"].(keywords)["anyOf"] = append([]keywords{{"enum": paths}}, patterns...)
	return out
}

func balanceOf(keys []key) keywords {
	named, flows := keywords{}, keywords{}
	for _, k := range keys {
		values := keywords{"$ref": "#/$defs/values", "items": k.ref}
		if strings.Contains(k.path, "*") {
			flows[k.pattern()] = values
		} else {
			named[k.path] = values
		}
	}
	return keywords{"type": "object", "additionalProperties": false, "properties": named, "patternProperties": flows}
}

// campaignSchema is the JSON Schema of campaigns as the rules have it.
func campaignSchema(t *testing.T) keywords {
	w := writer{t: t}
	out := w.of("", schema{}.file())
	trial := w.of("trial", schema{}.trial())
	flows := trial["properties"].(keywords)["traffic"].(keywords)
	flow := flows["additionalProperties"]
	flows["additionalProperties"] = ref("flow")
	keys := append(keysOfTrial(schema{}.trial(), "", "trial"), key{"acceptance", ref("rules")})
	keys = append(keys, keysOfTrial(schema{}.acceptance(false), "acceptance", "rules")...)
	level := keywords{}
	for _, k := range keys {
		if !strings.Contains(k.path, ".") {
			level[k.path] = k.ref
		}
	}
	section := out["properties"].(keywords)["trial"].(keywords)
	out["properties"].(keywords)["trial"] = keywords{"$ref": "#/$defs/trial", "description": section["description"]}
	out["$defs"] = keywords{"trial": trial, "flow": flow, "rules": w.of("acceptance", schema{}.acceptance(false)),
		"factor": w.factor(keys), "balance": balanceOf(keys),
		"level":  keywords{"type": "object", "additionalProperties": false, "properties": level},
		"values": keywords{"type": "array", "minItems": 2, "maxItems": maxBalanced, "uniqueItems": true}}
	out["$comment"] = "Written by `go generate` in controller/plan. " +
		"Which keys go together is for `fieldmesh plan check` to say."
	return out
}

func TestCampaignSchemaIsCurrent(t *testing.T) {
	if err := schemas.Current(editorSchema, "Fieldmesh campaign", campaignSchema(t), *update); err != nil {
		t.Error(err)
	}
}

// editor holds campaigns to the committed schema.
func editor(t testing.TB) func(raw []byte) error {
	t.Helper()
	validate, err := schemas.Compile(editorSchema)
	if err != nil {
		t.Fatal(err)
	}
	return validate
}

func TestSchemaTakesEveryCampaign(t *testing.T) {
	validate := editor(t)
	if err := validate([]byte(fine)); err != nil {
		t.Error(err)
	}
	shipped, err := filepath.Glob(filepath.Join("..", "..", "campaigns", "*.yaml"))
	if err != nil || len(shipped) < 10 {
		t.Fatalf("campaigns are %v: %v", shipped, err)
	}
	others := []string{filepath.Join("..", "cmd", "scene", "testdata", "many.yaml"),
		filepath.Join("..", "..", "test", "routingd", "testdata", "detour.yaml")}
	for _, path := range append(others, shipped...) {
		raw, err := os.ReadFile(path)
		if err == nil {
			err = validate(raw)
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		named := bytes.HasPrefix(raw, []byte("# yaml-language-server: $schema=campaign.schema.json\n"))
		if !named && !slices.Contains(others, path) {
			t.Errorf("%s does not begin with the name of its schema", path)
		}
	}
}

// ofOneKey are complaints about a key or a value by itself.
var ofOneKey = regexp.MustCompile(`unknown key|cannot name|has no value|is not allowed; allowed:`)

func TestSchemaRefusesWhatTheReaderRefuses(t *testing.T) {
	validate, tried := editor(t), 0
	for _, x := range readFaults(t) {
		if !ofOneKey.MatchString(strings.Join(x.want, "\n")) {
			continue
		}
		if x.name == "address of the network itself" {
			continue // a schema cannot reckon with addresses
		}
		if tried++; validate(x.file(t)) == nil {
			t.Errorf("%s: the schema takes it", x.name)
		}
	}
	if tried < 40 {
		t.Errorf("only %d faults are tried", tried)
	}
}
