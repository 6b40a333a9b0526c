// Package choice makes of a campaign file one that is driven at other speeds or
// with other repetitions. What was chosen becomes a scale that the file declares,
// so that plan, run and report tell it as they tell any scale; the text that was
// there stays as it is, byte for byte.
package choice

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// scaleName is what the scale is called that a choice becomes.
const scaleName = "chosen"

// whyMost is how many characters a scale may say why it is.
const whyMost = 2000

// chosenBy begins what a scale says of itself that was made of a choice.
const chosenBy = "Chosen by the experimenter: "

// Is reports whether a scale was made of a choice.
func Is(s *plan.Scale) bool { return s != nil && strings.HasPrefix(s.Why, chosenBy) }

// Choice is what differs from a campaign at a scale; zero: nothing.
type Choice struct {
	Scale       string    // "" is the full campaign
	SpeedsMps   []float64 // empty: the campaign's own
	Repetitions int       // 0: the campaign's own
}

// Settable are the speeds of a campaign in place of which others can be chosen, in its
// order: those of the factor that is the speed, or whose levels have one each. None:
// it has no such factor.
func Settable(c *plan.Campaign) []float64 {
	_, speeds := speedFactor(c)
	return speeds
}

// speedFactor is the factor whose levels are speeds, and these.
func speedFactor(c *plan.Campaign) (f *plan.Factor, speeds []float64) {
	for i := range c.Factors {
		if speeds = levelSpeeds(c, c.Factors[i]); speeds != nil {
			return &c.Factors[i], speeds
		}
	}
	return nil, nil
}

// levelSpeeds are the speeds of a factor's levels, each of which is its label.
func levelSpeeds(c *plan.Campaign, f plan.Factor) (speeds []float64) {
	for _, level := range f.Levels {
		speed, err := strconv.ParseFloat(level, 64)
		if err != nil {
			return nil
		}
		speeds = append(speeds, speed)
	}
	other := func(t wire.Trial) bool {
		level, varies := t.Factors[f.Name]
		return varies && (t.SpeedMps == nil || level != label(*t.SpeedMps))
	}
	if c.Any(other) {
		return nil
	}
	return speeds
}

func label(speed float64) string { return strconv.FormatFloat(speed, 'f', -1, 64) }

// Of returns the text of a campaign file at a choice, and the scale at which it is to
// be read. The path is the file's. Faults come as tree.Problems, of the text that is
// returned where the choice is at fault.
func Of(path string, raw []byte, ch Choice) (text []byte, scale string, c *plan.Campaign, err error) {
	c, err = plan.ParseAt(path, raw, ch.Scale)
	scale = cmp.Or(ch.Scale, plan.FullScale)
	if err != nil || len(ch.SpeedsMps) == 0 && ch.Repetitions == 0 {
		return raw, scale, c, err
	}
	overlay, why, err := ch.overlay(c)
	if err != nil || len(overlay) == 0 {
		return raw, scale, c, err
	}
	if scale = freeName(c.Scales); scale == "" {
		return nil, "", nil, fmt.Errorf("%s: every name for a scale of a choice is taken; rename the scale %s", path,
			scaleName)
	}
	if text, err = withScale(path, raw, ch.Scale, scale, why, overlay); err != nil {
		return nil, "", nil, err
	}
	c, err = plan.ParseAt(path, text, scale)
	return text, scale, c, err
}

// overlay is what the scale sets, and what it says of that. Of what is the
// campaign's own anyway nothing is set.
func (ch Choice) overlay(c *plan.Campaign) (overlay yaml.MapSlice, why string, err error) {
	var said []string
	if len(ch.SpeedsMps) > 0 {
		f, own := speedFactor(c)
		if f == nil {
			return nil, "", wire.Errorf(wire.CodeBadRequest, "speeds_mps: campaign %s has no factor whose levels are "+
				"speeds; leave them out", c.Name)
		}
		if !slices.Equal(own, ch.SpeedsMps) {
			set, err := levels(*f, own, ch.SpeedsMps)
			if err != nil {
				return nil, "", err
			}
			overlay = append(overlay, yaml.MapItem{Key: "factors", Value: yaml.MapSlice{{Key: f.Name, Value: set}}})
			said = append(said, fmt.Sprintf("the speeds are %s m/s instead of %s m/s", listed(ch.SpeedsMps),
				listed(own)))
		}
	}
	if own := c.Design.Repetitions; ch.Repetitions > 0 && ch.Repetitions != own {
		overlay = append(overlay, yaml.MapItem{Key: "design",
			Value: yaml.MapSlice{{Key: "repetitions", Value: ch.Repetitions}}})
		said = append(said, fmt.Sprintf("the repetitions are %d instead of %d", ch.Repetitions, own))
	}
	why = chosenBy + strings.Join(said, "; ") + "."
	if c.Scale != nil {
		why += fmt.Sprintf(" Else it is the scale %s. %s", c.Scale.Name, c.Scale.Why)
	}
	if runes := []rune(why); len(runes) > whyMost {
		why = string(runes[:whyMost-1]) + "…"
	}
	return overlay, why, nil
}

// levels are what a scale says of a factor to have these speeds. Levels that set more
// than the speed can be chosen from, and no others made.
func levels(f plan.Factor, own, speeds []float64) (yaml.MapSlice, error) {
	if f.Key != "" {
		return yaml.MapSlice{{Key: "levels", Value: speeds}}, nil
	}
	var only []string
	for _, speed := range speeds {
		if !slices.Contains(own, speed) {
			return nil, wire.Errorf(wire.CodeBadRequest, "speeds_mps: %s m/s is not one of %s m/s, and the levels of "+
				"factor %s set more than the speed; choose of these", label(speed), listed(own), f.Name)
		}
		only = append(only, f.Levels[slices.Index(own, speed)])
	}
	return yaml.MapSlice{{Key: "only", Value: only}}, nil
}

func listed(speeds []float64) string {
	var out []string
	for _, speed := range speeds {
		out = append(out, label(speed))
	}
	return strings.Join(out, ", ")
}

// freeName is a name that no scale of the file has; "" if there is none.
func freeName(taken []string) string {
	for i := 1; i <= len(taken)+1; i++ {
		name := scaleName
		if i > 1 {
			name = fmt.Sprintf("%s_%d", scaleName, i)
		}
		if !slices.Contains(taken, name) {
			return name
		}
	}
	return ""
}

// withScale adds a scale to the text of a file: what the base scale sets, and over it
// the overlay.
func withScale(path string, raw []byte, base, name, why string, overlay yaml.MapSlice) ([]byte, error) {
	var file struct {
		Scales map[string]yaml.MapSlice `yaml:"scales"`
	}
	if err := yaml.UnmarshalWithOptions(raw, &file, yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("read the scales of %s: %w", path, err)
	}
	set := merged(file.Scales[base], overlay)
	set = slices.DeleteFunc(set, func(i yaml.MapItem) bool { return i.Key == "why" })
	set = append(yaml.MapSlice{{Key: "why", Value: why}}, set...)
	// In brackets and braces, so that it stands wherever a value may.
	value, err := yaml.MarshalWithOptions(set, yaml.Flow(true))
	if err != nil {
		return nil, fmt.Errorf("write the scale %s of %s: %w", name, path, err)
	}
	return insert(path, raw, name+": "+strings.TrimSpace(string(value)))
}

// merged is a mapping over another: mappings in it are merged, all else replaced.
func merged(base, over yaml.MapSlice) yaml.MapSlice {
	out := slices.Clone(base)
	for _, item := range over {
		i := slices.IndexFunc(out, func(o yaml.MapItem) bool { return o.Key == item.Key })
		if i < 0 {
			out = append(out, item)
			continue
		}
		old, wasMap := out[i].Value.(yaml.MapSlice)
		if now, isMap := item.Value.(yaml.MapSlice); isMap && wasMap {
			item.Value = merged(old, now)
		}
		out[i] = item
	}
	return out
}

// insert puts an entry into the section scales of a file, which it adds to one
// that has none.
func insert(path string, raw []byte, entry string) ([]byte, error) {
	file, err := parser.ParseBytes(raw, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	section, err := yaml.PathString("$.scales")
	if err != nil {
		return nil, fmt.Errorf("find the scales of %s: %w", path, err)
	}
	node, err := section.FilterFile(file)
	if err != nil { // it has none
		text := slices.Clone(raw)
		if len(text) > 0 && text[len(text)-1] != '\n' {
			text = append(text, '\n')
		}
		return append(text, "\nscales:\n  "+entry+"\n"...), nil
	}
	scales, ok := node.(*ast.MappingNode)
	if !ok || len(scales.Values) == 0 && !scales.IsFlowStyle {
		return nil, fmt.Errorf("%s: scales is no mapping", path)
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	if scales.IsFlowStyle {
		at := scales.Start.Position
		line := []rune(string(lines[at.Line-1]))
		lines[at.Line-1] = []byte(string(line[:at.Column]) + entry + ", " + string(line[at.Column:]))
		return bytes.Join(lines, nil), nil
	}
	at := scales.Values[0].Key.GetToken().Position
	line := strings.Repeat(" ", at.Column-1) + entry + "\n"
	return bytes.Join(slices.Insert(lines, at.Line-1, []byte(line)), nil), nil
}
