package plan

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/plan/tree"
)

// Movement is the movement files that the campaign names, by their base names.
func (c *Campaign) Movement() (map[string][]byte, error) {
	return c.Field.ReadFiles(filepath.Dir(c.Path))
}

// mobilityKeys says which keys belong to which model, the needed ones first.
func mobilityKeys(model string) (needed, possible []string) {
	switch model {
	case "chain":
		return []string{"spacing_m"}, []string{"start", "area", "moves"}
	case "grid":
		return []string{"spacing_m", "columns"}, []string{"start", "area", "moves"}
	case "placed":
		return []string{"positions"}, []string{"area", "moves"}
	case "random_waypoint":
		return []string{"area", "speed_min_mps", "speed_max_mps"}, []string{"pause_s", "positions"}
	case "setdest":
		return []string{"area", "speed_max_mps"}, []string{"speed_min_mps", "pause_s", "positions"}
	case "ns2", "bonnmotion":
		return []string{"file"}, []string{"area"}
	case "tracks":
		return []string{"tracks"}, []string{"positions", "align", "area"}
	}
	return nil, nil
}

const planeMost = 100_000 // metres; a receiver's plane does not serve farther

func plane() number { return number{-planeMost, planeMost, false, false, "m"} }

func side() number { return number{1, planeMost, false, false, "m"} }

func placeRule() object {
	return object{[]field{required("x_m", plane(), "How far east"), required("y_m", plane(), "How far north")}}
}

func (s schema) mobility() object {
	name := pattern{regexp.MustCompile(nameForm), nameWords}
	speed := number{0, maxSpeedMps, false, false, "m/s"}
	file := pattern{regexp.MustCompile(movementFile), "a file in the folder movement beside the campaign, such as " +
		"movement/walk.tcl"}
	track := pattern{regexp.MustCompile(strings.TrimSuffix(movementFile, "$") + `\.(gpx|nmea)$`),
		"a .gpx or .nmea file in the folder movement beside the campaign, such as movement/walk.gpx"}
	return object{[]field{
		required("model", choice{"chain", "grid", "placed", "random_waypoint", "setdest", "ns2", "bonnmotion",
			"tracks"},
			"How the nodes move, or stand"),
		optional("area", object{[]field{required("width_m", side(),
			"From west to east"), required("height_m", side(), "From south to north")}},
			"The rectangle that nodes stay in, with a corner at the origin"),
		optional("spacing_m", number{0, 5000, true, false, "m"}, "chain, grid: distance between neighbours"),
		optional("columns", number{1, 200, false, true, ""}, "grid: nodes in a row"),
		optional("start", placeRule(), "chain, grid: where the first node stands; absent: at the origin"),
		optional("positions", table{what: "node", name: name.form, names: nameWords, row: placeRule()},
			"Where nodes stand or start"),
		optional("moves", list{1, 10_000, object{[]field{
			required("node", reference{"node", s.nodes}, "The node that moves"),
			required("at_s", number{0, 1e6, false, false, "s since the window opened"}, "When it sets off"),
			required("x_m", plane(), "How far east it goes"),
			required("y_m", plane(), "How far north it goes"),
			required("speed_mps", speed, "How fast it goes"),
		}}, false}, "Moves in straight lines, each node's in the order of time"),
		optional("speed_min_mps", tripSpeed(), "random_waypoint, setdest: least speed of a trip (setdest: or 0)"),
		optional("speed_max_mps", number{0, maxSpeedMps, true, false, "m/s"}, "random_waypoint, setdest: greatest "+
			"speed of a trip"),
		optional("pause_s", number{0, 86400, false, false, "s"}, "random_waypoint, setdest: how long a node "+
			"rests after a trip").
			or(0),
		optional("file", file, "ns2, bonnmotion: the movement file"),
		optional("tracks", table{what: "node", name: name.form, names: nameWords, row: track},
			"tracks: recordings of GPS, by node"),
		optional("align", choice{"start", "clock"},
			"tracks: whether recordings begin together or keep their clock").or("start"),
	}}
}

func tripSpeed() rule {
	return checked{number{0, maxSpeedMps, false, false, "m/s"},
		"a number above 0 up to 60 m/s; with speeds down to 0 the mean duration of a trip is infinite, " +
			"the nodes' mean speed falls for ever, and there is no steady state to start in: model setdest " +
			"draws such speeds",
		func(n *tree.Node) bool { return n.Number > 0 }, map[string]any{"exclusiveMinimum": 0}}
}

// movementFile is the form of a file's path: in the folder movement beside
// the campaign, which goes with the campaign into a run's archive.
const movementFile = `^movement/[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$`

// scene is what one rule alone cannot see of field.mobility.
type scene struct {
	p    *parse
	tree *tree.Node
}

func (p *parse) checkMobility(n *tree.Node) {
	if n == nil || n.Shape != tree.Map {
		return
	}
	s := scene{p, n}
	s.keys()
	s.speeds()
	s.whole()
	s.places()
	s.moves()
}

func (s scene) add(at tree.Position, format string, args ...any) {
	s.p.findings.Add(at, "field.mobility"+format, args...)
}

func (s scene) keys() {
	model := s.tree.TextAt("model")
	if model == "" {
		return
	}
	needed, possible := mobilityKeys(model)
	for _, key := range needed {
		if s.tree.Child(key) == nil && !s.tree.Strange {
			s.add(s.tree.Home, ": key %q is missing; allowed: %s", key, s.p.schema.mobility().field(key).allowed())
		}
	}
	for _, e := range s.tree.Entries {
		if e.Key != "model" && s.p.schema.mobility().field(e.Key) != nil && !slices.Contains(needed, e.Key) &&
			!slices.Contains(possible, e.Key) {
			s.add(e.At, ".%s: %s is not allowed with model %s; allowed: %s", e.Key, e.Value.Show(), model,
				strings.Join(append(needed, possible...), ", "))
		}
	}
}

func (s scene) speeds() {
	least, most := s.tree.NumberAt("speed_min_mps"), s.tree.NumberAt("speed_max_mps")
	if least != nil && most != nil && *most < *least {
		s.add(s.tree.Child("speed_max_mps").At, ".speed_max_mps: %s is below speed_min_mps %s; allowed: "+
			"speed_min_mps or more",
			formatNumber(*most), formatNumber(*least))
	}
}

// whole asks that every node has a place, and every place a node.
func (s scene) whole() {
	nodes := s.p.schema.nodes
	if nodes == nil {
		return
	}
	for _, key := range []string{"positions", "tracks"} {
		for _, e := range s.tree.Child(key).EntriesOrNone() {
			reference{"node", nodes}.check(&s.p.findings, "field.mobility."+key, tree.NewText(e.Key, e.At))
		}
	}
	model := s.tree.TextAt("model")
	if model != "placed" && model != "tracks" || s.tree.Strange {
		return
	}
	for _, name := range nodes {
		switch has := s.tree.Child("positions").Child(name) != nil; {
		case has && s.tree.Child("tracks").Child(name) != nil:
			s.add(s.tree.Lookup("positions."+name).Home, ".positions: node %s has a track already; allowed: one "+
				"of them", name)
		case !has && s.tree.Child("tracks").Child(name) == nil:
			s.add(s.tree.Home, ": node %s has no place; allowed: %s for every node", name,
				map[string]string{"placed": "positions", "tracks": "tracks or positions"}[model])
		}
	}
}

// outside tells in words that a place is not in the area, empty when it is.
func (s scene) outside(x, y *float64) string {
	w, h := s.tree.NumberAt("area.width_m"), s.tree.NumberAt("area.height_m")
	if w == nil || h == nil || x == nil || y == nil || *x >= 0 && *x <= *w && *y >= 0 && *y <= *h {
		return ""
	}
	return fmt.Sprintf("(%s, %s) is outside the area; allowed: x_m 0 to %s, y_m 0 to %s", formatNumber(*x),
		formatNumber(*y), formatNumber(*w), formatNumber(*h))
}

func (s scene) places() {
	for _, e := range s.tree.Child("positions").EntriesOrNone() {
		if words := s.outside(e.Value.NumberAt("x_m"), e.Value.NumberAt("y_m")); words != "" {
			s.add(e.Value.At, ".positions.%s: %s", e.Key, words)
		}
	}
	model, spacing := s.tree.TextAt("model"), s.tree.NumberAt("spacing_m")
	if spacing == nil || len(s.p.schema.nodes) == 0 || model != "chain" && model != "grid" {
		return
	}
	columns := len(s.p.schema.nodes)
	if c := s.tree.WholeAt("columns"); model == "grid" && c != nil {
		columns = max(*c, 1)
	}
	last := len(s.p.schema.nodes) - 1
	x := s.tree.NumberOrZero("start.x_m") + *spacing*float64(min(last, columns-1))
	y := s.tree.NumberOrZero("start.y_m") + *spacing*float64(last/columns)
	if words := s.outside(&x, &y); words != "" {
		s.add(s.tree.Child("spacing_m").At, ".spacing_m: the last node of the %s at %s", model, words)
	} else if words := s.outside(s.tree.NumberAt("start.x_m"), s.tree.NumberAt("start.y_m")); words != "" {
		s.add(s.tree.Child("start").At, ".start: %s", words)
	}
}

func (s scene) moves() {
	newest := map[string]float64{}
	for i, m := range s.tree.Child("moves").ItemsOrNone() {
		if words := s.outside(m.NumberAt("x_m"), m.NumberAt("y_m")); words != "" {
			s.add(m.At, ".moves: move %d: %s", i+1, words)
		}
		name, at := m.TextAt("node"), m.NumberAt("at_s")
		if name == "" || at == nil {
			continue
		}
		if before, any := newest[name]; any && *at < before {
			s.add(m.Child("at_s").At, ".moves: move %d: node %s goes back in time from %s s to %s s; allowed: a "+
				"node's moves in the order of time", i+1, name, formatNumber(before), formatNumber(*at))
		}
		newest[name] = *at
	}
}
