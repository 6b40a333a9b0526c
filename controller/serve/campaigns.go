package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/choice"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/controller/preflight"
	"fieldmesh.dev/fieldmesh/protocols/campaigns"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// campaignsMost bounds how many files of the folder are offered.
const campaignsMost = 200

// files are the campaign files by their names, without the ending.
func (s *Server) files() (map[string]string, error) {
	entries, err := os.ReadDir(s.campaigns)
	if err != nil {
		return nil, fmt.Errorf("list campaigns: %w; --campaigns names another folder", err)
	}
	out := map[string]string{}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".yaml"); ok && !strings.HasPrefix(name, ".") && !e.IsDir() &&
			len(out) < campaignsMost {
			out[name] = filepath.Join(s.campaigns, e.Name())
		}
	}
	return out, nil
}

// offered is a campaign as a file had it.
type offered struct {
	size     int64
	modified time.Time
	campaign campaigns.Campaign
}

func (s *Server) listCampaigns(*call) (any, error) {
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	fl, err := fleet.Load(s.fleet)
	if err != nil {
		return nil, err
	}
	out := campaigns.Campaigns{Campaigns: []campaigns.Campaign{}}
	for _, path := range files {
		c, err := s.offer(path)
		if errors.Is(err, fs.ErrNotExist) { // taken away meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, n := range c.Nodes {
			if _, known := fl.Nodes[n]; !known {
				c.Missing = append(c.Missing, n)
			}
		}
		out.Campaigns = append(out.Campaigns, c)
	}
	slices.SortFunc(out.Campaigns, func(x, y campaigns.Campaign) int { return strings.Compare(x.Name, y.Name) })
	return out, nil
}

// offer reads a campaign, unless its file is as it was.
func (s *Server) offer(path string) (campaigns.Campaign, error) {
	info, err := os.Stat(path)
	if err != nil {
		return campaigns.Campaign{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, known := s.offered[path]; known && o.size == info.Size() && o.modified.Equal(info.ModTime()) {
		return o.campaign, nil
	}
	c := describe(path)
	s.offered[path] = offered{info.Size(), info.ModTime(), c}
	return c, nil
}

// readAhead reads the campaigns before they are asked for: one of thousands of trials takes seconds.
func (s *Server) readAhead(ctx context.Context) {
	files, err := s.files()
	for _, path := range files {
		if ctx.Err() != nil {
			return
		}
		_, oerr := s.offer(path)
		err = errors.Join(err, oerr)
	}
	if err != nil {
		s.log.Warn("campaigns cannot be read", "error", err)
	}
}

// describe is a campaign as it is offered. A file with faults is told with them.
func describe(path string) campaigns.Campaign {
	name := strings.TrimSuffix(filepath.Base(path), ".yaml")
	out := campaigns.Campaign{Name: name, Title: name, Scales: []campaigns.Scale{}, Nodes: []string{}}
	c, err := plan.Load(path)
	if err != nil {
		out.Refused = err.Error()
		return out
	}
	out.Title, out.Question, out.Repetitions = c.Title, c.Question, c.Design.Repetitions
	out.RangeTest = strings.HasPrefix(name, "range-test")
	for _, n := range c.Nodes {
		out.Nodes = append(out.Nodes, n.Name)
	}
	var faults tree.Findings
	root := tree.Read(c.Raw, "", &faults)
	for _, scale := range c.Scales {
		out.Scales = append(out.Scales, campaigns.Scale{Name: scale, Text: root.TextAt("scales." + scale + ".why")})
	}
	if err := preflight.Drivable(c); err != nil {
		out.Refused = err.Error()
		return out
	}
	out.SpeedsMps = choice.Settable(c)
	return out
}

// chosen is a choice as a campaign.
type chosen struct {
	text     []byte // of the campaign's file
	scale    string // at which it is to be read
	campaign *plan.Campaign
}

// choose makes a campaign of a choice. A fault is told in the format's own words.
func (s *Server) choose(c campaigns.Choice) (chosen, error) {
	files, err := s.files()
	if err != nil {
		return chosen{}, err
	}
	path, known := files[c.Campaign]
	if !known {
		return chosen{}, &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("there is no campaign %.80q",
			c.Campaign), Cure: "GET /v1/campaigns lists them"}
	}
	raw, err := tree.ReadFile(path)
	if err != nil {
		return chosen{}, fmt.Errorf("read campaign: %w", err)
	}
	text, scale, campaign, err := choice.Of(path, raw, choice.Choice{Scale: c.Scale, SpeedsMps: c.SpeedsMps,
		Repetitions: c.Repetitions})
	if problems, faulty := errors.AsType[tree.Problems](err); faulty {
		return chosen{}, &wire.Error{Code: wire.CodeBadRequest, Message: shortened(problems.Error(), saidMost),
			Cure: "choose within what is allowed, or correct the campaign on the controller"}
	}
	if err != nil {
		return chosen{}, err
	}
	return chosen{text, scale, campaign}, nil
}

// plan says what a choice takes, by the numbers of `fieldmesh plan show`.
func (s *Server) plan(call *call, c campaigns.Choice) (any, error) {
	if err := hold(call.poll, s.planning); err != nil { // a large one takes seconds
		return nil, err
	}
	defer release(s.planning)
	ch, err := s.choose(c)
	if err != nil {
		return nil, err
	}
	trials, err := ch.campaign.Schedule()
	if err != nil {
		return nil, refusedCampaign(c.Campaign, err)
	}
	e := ch.campaign.Estimate()
	out := campaigns.Planned{Trials: len(trials), TimeS: e.RoadTotalS, Repetitions: ch.campaign.Design.Repetitions,
		SpeedsMps: speedsOf(trials)}
	if e.LongestM > 0 {
		out.RoadM = new(e.SpanM())
	}
	if scale := ch.campaign.Scale; scale != nil {
		out.Deviations = []string{scale.Why}
	}
	return out, nil
}

// refusedCampaign is the answer for a campaign that no fleet can drive.
func refusedCampaign(name string, why error) error {
	return &wire.Error{Code: wire.CodeBadRequest, Message: fmt.Sprintf("campaign %s cannot be driven: %s", name, why),
		Cure: "choose another campaign"}
}

// speedsOf are the speeds of a schedule, calibration apart, slowest first.
func speedsOf(trials []wire.Trial) (out []float64) {
	for _, t := range trials {
		if t.SpeedMps != nil && t.Pass == "" {
			out = append(out, *t.SpeedMps)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// preflightTime bounds a preflight; patience is how long it waits for what comes by itself.
const (
	preflightTime = time.Minute
	patience      = 10 * time.Second
)

// check holds the fleet against a choice, one at a time: nodes look at themselves for it.
func (s *Server) check(c *call, want campaigns.Choice) (any, error) {
	ch, err := s.choose(want)
	if err != nil {
		return nil, err
	}
	if _, err := ch.campaign.Schedule(); err != nil {
		return nil, refusedCampaign(want.Campaign, err)
	}
	ctx, cancel := context.WithTimeout(c.poll, preflightTime)
	defer cancel()
	if err := hold(ctx, s.checking); err != nil {
		return nil, err
	}
	defer release(s.checking)
	if err := s.free(""); err != nil { // its nodes would look at themselves within a window
		return nil, err
	}
	fl, err := fleet.Load(s.fleet)
	if err != nil {
		return nil, err
	}
	report, err := s.preflight(ctx, ch.campaign, fl)
	if err != nil {
		return nil, err
	}
	out := campaigns.Preflight{Ready: report.Pass, Needs: []campaigns.Need{}}
	for _, i := range report.Items {
		if i.State != preflight.Unneeded {
			out.Needs = append(out.Needs, campaigns.Need{Node: i.Node, Need: i.Need, Outcome: i.State, Found: i.Found,
				Cure: i.Cure})
		}
	}
	return out, nil
}

// askFleet is `fieldmesh preflight`.
func askFleet(ctx context.Context, c *plan.Campaign, fl *fleet.Fleet) (preflight.Report, error) {
	return preflight.Patiently(ctx, patience, func(ctx context.Context) (preflight.Report, error) {
		return preflight.Fleet(ctx, c, fl, preflight.Given{}, false)
	})
}

// hold takes what one call at a time may have.
func hold(ctx context.Context, one chan struct{}) error {
	select {
	case one <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for another call: %w", ctx.Err())
	}
}

func release(one chan struct{}) { <-one }
