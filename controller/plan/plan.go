// Package plan reads a campaign file and expands it into the schedule of
// trials that nodes hold. It is for what can be judged at a desk, before
// anything moves: the file's syntax, its ranges, its references, and whether
// its design can be driven at all. What a node or a fleet can do stays out,
// and so does everything about a trial's result: no key of the format speaks
// of one.
//
// The format is described by the campaign files that ship and, rule by rule,
// by schema.go.
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/plan/draw"
	"fieldmesh.dev/fieldmesh/controller/plan/drive"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Campaign is a campaign file without a fault, with its schedule.
type Campaign struct {
	Path     string // as it was given
	Name     string
	Title    string
	Question string
	Asks     []string // effects that the question is about: factors, or of design.Words; empty: what the design varies
	Notes    string

	Nodes       []Node
	Control     string // how the controller reaches them: own | mesh; absent: either will do
	Factors     []Factor
	Design      Design
	AttemptsMax int                // of each trial, the first included
	Site        *environment.Site  // absent: no sheet was filled in
	Field       *environment.Field // absent: the rehearsal's defaults

	// Warnings are what the file may say, and whoever reads its results should know.
	Warnings tree.Problems

	Paper *Paper // whose question it puts; absent: nobody's
	Scale *Scale // the reduction that this is; absent: the full campaign
	// Scales are the names of the reductions that the file declares, in its order.
	Scales []string

	Raw    []byte // the file, byte for byte
	SHA256 string // of Raw, in hexadecimal

	trials        []wire.Trial
	repetitionsAt tree.Position
	drawn         bool // flows that are led across others have their ends
}

// Paper is the paper whose question a campaign puts, so that the report sets
// the paper's figures beside the run's.
type Paper struct {
	Name     string `json:"name"`               // p1 to p5
	Scenario string `json:"scenario,omitempty"` // the paper's word for it, where it has several
	// in what the campaign is not as the paper has it, or as it was read where the paper is silent
	Deviations []string `json:"deviations,omitempty"`
}

// Node is one node that the campaign names.
type Node struct {
	Name        string `json:"name"`
	Unit        string `json:"unit,omitempty"` // the hardware that carries it
	MeshAddress string `json:"mesh_address"`   // with the prefix length
}

// Factor is one factor of the design with its levels' labels, in the file's order.
type Factor struct {
	Name   string   `json:"name"`
	Key    string   `json:"key,omitempty"` // dotted key of a trial that it varies; absent when its levels set several
	Levels []string `json:"levels"`
}

// Design says how cells become an order of trials.
type Design struct {
	Repetitions int      `json:"repetitions"`
	Order       string   `json:"order"` // randomised_blocks | as_listed
	Seed        uint64   `json:"seed"`
	WholePlots  []string `json:"whole_plots,omitempty"` // factors that change seldom within a block
	// dotted key → values spread evenly over a cell's repetitions
	Balance  map[string][]string `json:"balance,omitempty"`
	StopWhen *StopWhen           `json:"stop_when,omitempty"` // absent: all repetitions are driven
}

// Load reads a campaign file. Faults of its content come as Problems.
func Load(path string) (*Campaign, error) { return LoadAt(path, FullScale) }

// LoadAt reads a campaign file at one of its scales.
func LoadAt(path, scale string) (*Campaign, error) {
	raw, err := tree.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read campaign: %w", err)
	}
	return ParseAt(path, raw, scale)
}

// Parse reads a campaign from the bytes of a file; name stands in its
// problems. An error is always Problems.
func Parse(name string, raw []byte) (*Campaign, error) { return ParseAt(name, raw, FullScale) }

// ParseAt reads a campaign at one of its scales; "" is the full one.
func ParseAt(name string, raw []byte, scale string) (*Campaign, error) {
	return parseAs(name, raw, scale, nil)
}

// ParseArchived is ParseAt for the campaign of a run, whose keys may have their former names.
func ParseArchived(name string, raw []byte, scale string) (*Campaign, error) {
	return parseAs(name, raw, scale, renamed.Modernise)
}

// parseAs reads a campaign; one of an archive is made modern first, and may have what
// new ones may not.
func parseAs(name string, raw []byte, scale string, modernise func(*tree.Node, string)) (*Campaign, error) {
	p := &parse{file: name, archived: modernise != nil}
	root := tree.Read(raw, fmt.Sprintf("fieldmesh: %d", formatVersion), &p.findings)
	if root == nil {
		return nil, p.findings.Problems(name, 0)
	}
	if modernise != nil {
		modernise(root, "")
	}
	if !p.checkVersion(root) {
		return nil, p.findings.Problems(name, 0)
	}
	root = tree.SpreadRanges(root, &p.findings)
	p.defineNodes(root.Child("nodes"))
	root = p.scaled(root, scale)
	p.checkFile(root)
	trials := p.expand(root)
	p.checkReference(root, trials)
	p.checkSize(root, trials)
	p.checkIdle(trials)
	if problems := p.findings.Problems(name, p.cellCount); len(problems) > 0 {
		return nil, problems
	}
	sum := sha256.Sum256(raw)
	c := &Campaign{
		Path: name, Name: root.TextAt("name"), Title: root.TextAt("title"), Question: root.TextAt("question"),
		Asks: p.asks, Notes: root.TextAt("notes"),
		Nodes: p.nodes, Control: root.TextAt("control"), Factors: p.publicFactors(), Design: p.design.public(),
		AttemptsMax: p.attemptsMax, repetitionsAt: root.Lookup("design.repetitions").At,
		Site: p.site, Field: p.field, Paper: p.paper, Scale: p.scale, Scales: p.scales,
		Raw: slices.Clone(raw), SHA256: hex.EncodeToString(sum[:]), trials: trials,
		Warnings: slices.Concat(p.unusualAddresses(), p.unusual(root, trials), p.differences(trials)),
	}
	if c.Field != nil && slices.ContainsFunc(trials, isReference) {
		c.Field.FrameLost = true // the reference TCP lives on it
	}
	return c, nil
}

// parse is the state of reading one file.
type parse struct {
	file        string
	archived    bool
	findings    tree.Findings
	schema      schema
	fieldTree   *tree.Node // the section field; nil without one
	nodes       []Node
	addressAt   map[string]tree.Position // of a node's mesh_address
	factors     []factor
	design      design
	asks        []string
	paper       *Paper
	site        *environment.Site
	field       *environment.Field
	attemptsMax int
	scale       *Scale
	scales      []string // names
	cellCount   int      // combinations of the factors' levels, for messages
	unsure      bool     // a factor is at fault, so a key that seems missing may be its to bring
}

// checkVersion comes first and alone: of a file of another version every
// other complaint would be noise.
func (p *parse) checkVersion(root *tree.Node) bool {
	n := root.Child("fieldmesh")
	switch {
	case n == nil:
		p.findings.Add(root.At, `the campaign: key "fieldmesh" is missing; allowed: fieldmesh: %d, the version of the format`, formatVersion)
	case n.Shape != tree.Number || n.Number != formatVersion:
		p.findings.Add(n.At, "fieldmesh: version %s is not known; allowed: %d", n.Show(), formatVersion)
	default:
		return true
	}
	return false
}

// checkFile holds the whole file to its rules and collects what it defines.
func (p *parse) checkFile(root *tree.Node) {
	file := p.schema.file()
	file.check(&p.findings, "", root)
	p.checkField(root)
	p.fieldTree = root.Child("field")
	p.paper = tree.As[Paper](&p.findings, root.Child("paper"))
	p.site = tree.As[environment.Site](&p.findings, root.Child("site"))
	p.field = tree.As[environment.Field](&p.findings, p.fieldTree)
	if n := root.Lookup("acceptance.attempts_max"); n.Fine() {
		p.attemptsMax = int(n.Number)
	}
	p.readFactors(root)
	p.schema.factors = p.factorNames()
	p.readDesign(root)
	p.readAsks(root.Child("asks"))
	p.checkCalibration(root)
}

// defineNodes collects the nodes' names and units and reports what two share.
func (p *parse) defineNodes(n *tree.Node) {
	if n == nil || n.Shape != tree.Map || len(n.Entries) == 0 {
		return
	}
	units, addresses := map[string]string{}, map[string]string{}
	p.addressAt = map[string]tree.Position{}
	for _, e := range n.Entries {
		if slices.Contains(p.schema.nodes, e.Key) && !p.archived { // written out of a range
			p.findings.Add(e.At, "nodes: node %s is there twice; allowed: ranges and names that do not meet", e.Key)
			continue
		}
		p.schema.nodes = append(p.schema.nodes, e.Key)
		address := p.shared(e, "mesh_address", addresses)
		if n := e.Value.Child("mesh_address"); n != nil {
			p.addressAt[e.Key] = n.At
		}
		unit := p.shared(e, "unit", units)
		if unit != "" {
			p.schema.units = append(p.schema.units, unit)
		}
		p.nodes = append(p.nodes, Node{Name: e.Key, Unit: unit, MeshAddress: address})
	}
	if p.schema.units == nil {
		p.schema.units = []string{}
	}
}

// prefixOf is a node's address with its network, not valid when there is none.
func (p *parse) prefixOf(name string) netip.Prefix {
	for _, n := range p.nodes {
		if prefix, err := netip.ParsePrefix(n.MeshAddress); n.Name == name && err == nil {
			return prefix
		}
	}
	return netip.Prefix{}
}

// unusualAddresses warns of mesh networks that no agent allows whose configuration does not say so.
func (p *parse) unusualAddresses() tree.Problems {
	var f tree.Findings
	usual := netip.MustParsePrefix(wire.DefaultMeshNetwork)
	warned := map[netip.Prefix]bool{}
	for _, n := range p.nodes {
		own := p.prefixOf(n.Name)
		network := own.Masked()
		if warned[network] || usual.Contains(own.Addr()) && own.Bits() >= usual.Bits() {
			continue
		}
		warned[network] = true
		f.Add(p.addressAt[n.Name], "nodes.%s.mesh_address: on the road, agents with root refuse %s unless "+
			"`allow.prefixes` in each node's agent.yaml has it; they allow %s by themselves", n.Name, network, usual)
	}
	return f.Problems(p.file, 0)
}

// motorwayMps is the general limit on motorways in most of Europe, 130 km/h.
const motorwayMps = 130 / 3.6

// unusual warns of clients that would give up, of speeds that nothing holds the car to, and of a car faster than it
// may: the speed may be in km/h.
func (p *parse) unusual(root *tree.Node, trials []wire.Trial) tree.Problems {
	var f tree.Findings
	fastest, unheld := 0., false
	for _, t := range trials {
		unheld = unheld || t.SpeedMps != nil && t.Acceptance.InBandShareMin == nil && !t.Gate.SpeedBand
		if t.SpeedMps != nil {
			fastest = max(fastest, *t.SpeedMps)
		}
		if err := tcpcc.CheckClient(t); err != nil && !p.archived {
			f.Add(root.Lookup("trial").Home, "trial: %v", err)
		}
	}
	if unheld && !p.archived {
		f.Add(root.Lookup("trial").Home, "trial.speed_mps: no rule holds the car to its speed, so a trial counts at "+
			"its target however fast it was driven; give acceptance.speed_band_mps and in_band_share_min")
	}
	if fastest > motorwayMps {
		f.Add(root.Lookup("trial").Home, "trial.speed_mps: the fastest trial is driven at %s m/s, which is %.0f km/h",
			formatNumber(fastest), fastest*3.6)
	}
	return f.Problems(p.file, 0)
}

// shared reads a node's key and reports a value that an earlier node has.
func (p *parse) shared(e tree.Entry, key string, owners map[string]string) string {
	n := e.Value.Child(key)
	if n == nil || n.Shape != tree.Text {
		return ""
	}
	host, _, _ := strings.Cut(n.Text, "/")
	if owner, taken := owners[host]; taken {
		p.findings.Add(n.At, "nodes.%s.%s: %s belongs to node %s already; allowed: one of its own", e.Key, key,
			n.Show(), owner)
	} else {
		owners[host] = e.Key
	}
	return n.Text
}

// Schedule is every trial in the order in which it is to be driven. The
// caller may change what it gets.
func (c *Campaign) Schedule() ([]wire.Trial, error) {
	if len(c.trials) == 0 {
		return nil, fmt.Errorf("expand campaign %q: it was not read from a file", c.Name)
	}
	if c.Crosses() && !c.drawn {
		return nil, fmt.Errorf("expand campaign %q: flows are led across others, and by no links yet", c.Name)
	}
	return cloneTrials(c.trials)
}

// Crosses reports whether there are flows that are led across others, so that
// their ends depend on the links of the field: see DrawAcross.
func (c *Campaign) Crosses() bool {
	return slices.ContainsFunc(c.trials, func(t wire.Trial) bool {
		return slices.ContainsFunc(t.Traffic, func(f wire.Flow) bool { return f.Across != "" })
	})
}

// DrawAcross gives the flows that are led across others their ends, by the links
// that a trial's nodes have so long after its window opened.
func (c *Campaign) DrawAcross(links func(t wire.Trial, atS float64) (*draw.Links, error)) error {
	for i := range c.trials {
		t := &c.trials[i]
		err := draw.Across(c.Design.Seed, t, func(atS float64) (*draw.Links, error) { return links(*t, atS) })
		if err != nil {
			return fmt.Errorf("%s: trial %d: %w", c.Path, t.Number, err)
		}
	}
	c.drawn = true
	return nil
}

// Estimate is the time and the road that the schedule takes.
func (c *Campaign) Estimate() drive.Estimate { return drive.Of(c.trials, c.AttemptsMax) }

// runName is the contract's form of a run's name.
var runName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// IsRunName reports whether a run may bear a name.
func IsRunName(name string) bool { return runName.MatchString(name) }

// runKeyBytes is the length of the key that authenticates GO.
const runKeyBytes = 32

// RunPlan is the whole run as nodes hold it. The nodes' control addresses and
// GO ports are absent: they are the fleet's to fill in.
func (c *Campaign) RunPlan(run string, key []byte) (wire.RunPlan, error) {
	if !runName.MatchString(run) {
		return wire.RunPlan{}, fmt.Errorf("name run %q: allowed are 1 to 64 of a-z, 0-9 and -", run)
	}
	if len(key) != runKeyBytes {
		return wire.RunPlan{}, fmt.Errorf("make plan of run %q: the key has %d bytes, allowed are %d", run, len(key),
			runKeyBytes)
	}
	trials, err := c.Schedule()
	if err != nil {
		return wire.RunPlan{}, err
	}
	out := wire.RunPlan{Run: run, Campaign: c.Name, CampaignSHA256: c.SHA256, Seed: c.Design.Seed,
		Key: slices.Clone(key), Trials: trials, AttemptsMax: c.AttemptsMax, Control: c.Control}
	for _, n := range c.Nodes {
		out.Nodes = append(out.Nodes, wire.PlanNode{Name: n.Name, Unit: n.Unit, MeshPrefix: n.MeshAddress})
	}
	return out, nil
}

// NeedsSite reports whether a gate waits for a place, and the file does not say where on Earth the roadside node
// stands. A rehearsal then chooses a site and writes it into the trials; on a road the run must be refused.
func (c *Campaign) NeedsSite() bool {
	return c.Any(func(t wire.Trial) bool {
		return t.Gate.PlaceM != nil && (t.Course.SiteLatDeg == nil || t.Course.SiteLonDeg == nil)
	})
}

// Any reports whether something holds of a trial of the schedule, which it must not change.
func (c *Campaign) Any(holds func(wire.Trial) bool) bool { return slices.ContainsFunc(c.trials, holds) }
