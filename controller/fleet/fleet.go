// Package fleet knows the nodes: the fleet file with their addresses and
// pinned keys, the making and revoking of those keys, and one client per node
// with a typed call for every call of the agent's API. It decides nothing
// about a run.
package fleet

import (
	"context"
	"errors"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

var errUnbuilt = errors.New("not built yet")

// Fleet is a fleet file.
type Fleet struct {
	Path  string          // the file that it was read from
	Keys  string          // folder of the controller's identity
	Nodes map[string]Node // by name
}

// Node is one node's entry.
type Node struct {
	Name    string            `yaml:"-"`
	Address string            `yaml:"address"`         // host:port of the agent's API
	Pin     string            `yaml:"pin"`             // of the agent's key
	Unit    string            `yaml:"unit,omitempty"`  // which hardware carries the node
	Netns   string            `yaml:"netns,omitempty"` // rehearsal only: the namespace from which the address is reached
	Labels  map[string]string `yaml:"labels,omitempty"`
}

// IssueOptions are what a node's entry may say beside its address.
type IssueOptions struct {
	Unit   string
	Netns  string
	Labels map[string]string
}

// Load reads and checks a fleet file.
func Load(path string) (*Fleet, error) { return nil, errUnbuilt }

// Init makes the controller's identity and an empty fleet.yaml in dir.
func Init(dir string) (keys.Identity, error) { return keys.Identity{}, errUnbuilt }

// Issue makes a node's bundle DIR/nodes/NAME/{node.crt,node.key,authorized.json}
// and adds the node to DIR/fleet.yaml; it returns the bundle's folder.
func Issue(dir, name, address string, o IssueOptions) (bundle string, err error) {
	return "", errUnbuilt
}

// Revoke takes a node out of DIR/fleet.yaml and deletes its bundle.
func Revoke(dir, name string) error { return errUnbuilt }

// Names lists the nodes in alphabetical order.
func (f *Fleet) Names() []string { return nil }

// Identity loads the controller's identity.
func (f *Fleet) Identity() (keys.Identity, error) { return keys.Identity{}, errUnbuilt }

// Client makes a client of one node. Close it after use.
func (f *Fleet) Client(identity keys.Identity, name string) (*Client, error) { return nil, errUnbuilt }

// Client calls one node's API. It may be used by several goroutines.
type Client struct{ node Node }

// NewClient makes a client of a node.
func NewClient(identity keys.Identity, node Node) *Client { return &Client{node: node} }

// Node is the entry that the client was made for.
func (c *Client) Node() Node { return c.node }

// Close closes the idle connections.
func (c *Client) Close() {}

// Status asks what the node is, can and has.
func (c *Client) Status(ctx context.Context) (wire.NodeStatus, error) {
	return wire.NodeStatus{}, errUnbuilt
}

// Clock asks for the node's clocks.
func (c *Client) Clock(ctx context.Context) (wire.ClockReply, error) {
	return wire.ClockReply{}, errUnbuilt
}

// Lease takes, renews or, with a TTL of 0, gives up the node's lease.
func (c *Client) Lease(ctx context.Context, l wire.Lease) (wire.Lease, error) {
	return l, errUnbuilt
}

// Load pushes a run's plan.
func (c *Client) Load(ctx context.Context, plan wire.RunPlan) (wire.CampaignView, error) {
	return wire.CampaignView{}, errUnbuilt
}

// View returns the node's view of a run. With a wait it first waits, at most
// so long, until the view's version is not known.
func (c *Client) View(ctx context.Context, run string, known uint64, wait time.Duration) (wire.CampaignView, error) {
	return wire.CampaignView{}, errUnbuilt
}

// Arm arms the node for one attempt.
func (c *Client) Arm(ctx context.Context, run string, k wire.TrialKey) (wire.CampaignView, error) {
	return wire.CampaignView{}, errUnbuilt
}

// Abort ends an attempt.
func (c *Client) Abort(ctx context.Context, run string, r wire.AbortRequest) (wire.CampaignView, error) {
	return wire.CampaignView{}, errUnbuilt
}

// Verdicts tells the node the outcomes known so far.
func (c *Client) Verdicts(ctx context.Context, run string, v []wire.Verdict) (wire.CampaignView, error) {
	return wire.CampaignView{}, errUnbuilt
}

// End ends a run: the node puts everything back.
func (c *Client) End(ctx context.Context, run string) (wire.RestoreReport, error) {
	return wire.RestoreReport{}, errUnbuilt
}

// Restore puts everything back on the node, whatever it is doing.
func (c *Client) Restore(ctx context.Context) (wire.RestoreReport, error) {
	return wire.RestoreReport{}, errUnbuilt
}

// Records reads up to limit (0: the node's choice) durable records after a
// sequence number of an epoch, one JSON object each without newline. With
// nothing there it waits, at most so long. When the node's epoch is another
// one, the answer starts from that epoch's beginning: compare.
func (c *Client) Records(ctx context.Context, epoch string, after uint64, limit int, wait time.Duration) (lines [][]byte, newEpoch string, last uint64, err error) {
	return nil, "", 0, errUnbuilt
}

// Confirm tells the node that the records up to a position are safe elsewhere.
func (c *Client) Confirm(ctx context.Context, p wire.SpoolPosition) (wire.SpoolStatus, error) {
	return wire.SpoolStatus{}, errUnbuilt
}

// ClockOffset estimates the node's clocks against this machine's by n
// exchanges, of which the one with the shortest round trip counts.
func (c *Client) ClockOffset(ctx context.Context, n int) (wire.Clock, error) {
	return wire.Clock{}, errUnbuilt
}
