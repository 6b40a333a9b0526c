package medium

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/dot11"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/eventqueue"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/ht"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// Sink takes what the medium hands up. Its methods run inside Advance and must
// not call the core; frames are the core's again when they return.
type Sink interface {
	// Deliver hands an Ethernet frame to a node at the model time of its end. It
	// returns false when the host does not take it.
	Deliver(node int, at time.Duration, ethernet []byte) bool
	// TxFailed says that a node gave a unicast frame up. The frame is the core's.
	TxFailed(node int, at time.Duration, peer MAC, ethernet []byte)
}

// Core is a channel in model time. It is not safe for concurrent use.
type Core struct {
	cfg    Config
	mpdus  MPDUSink // nil without Config.MPDUs
	phy    *phy.PHY
	links  *links
	locate Locate
	sink   Sink

	now       time.Duration
	events    eventqueue.Queue
	stations  []*station
	receivers []receiver      // by station
	air       []*transmission // all that is on the air, by their starts
	byMAC     map[MAC]int
	dead      bool
	relocks   bool // receivers go over to a much stronger frame at any time
	chains    bool // frames have retry chains, later stages of which begin with RTS,
	unlimited bool // and whose end alone ends a frame

	carrierMw  float64
	receiveMw  float64 // of ns-2's radio: the least power of what it can read
	interferes float64 // weight of an interferer's power; above 1 in a disc
	lastFrame  uint64
	freeFrames []*frame
	txs        []*transmission // all that were made
	freeTx     []*transmission // of which these are not on the air
	looks      []int32         // stations that look at the channel as a frame ends
	topMode    int             // the fastest that unicast data can go at
	minData    time.Duration   // the shortest time a data frame can take on the air
}

// NewCore makes a channel at model time 0. sink must not be nil.
func NewCore(cfg Config, locate Locate, sink Sink) (*Core, error) {
	chains := cfg.minstrel()
	unlimited := chains && cfg.ShortRetryLimit == 0 && cfg.LongRetryLimit == 0
	cfg, err := cfg.validate()
	if err != nil {
		return nil, err
	}
	p, err := phy.New(cfg.phy())
	if err != nil {
		return nil, err
	}
	n := len(cfg.Nodes)
	c := &Core{cfg: cfg, phy: p, locate: locate, sink: sink, chains: chains, unlimited: unlimited,
		byMAC: make(map[MAC]int, n), receivers: make([]receiver, n), interferes: 1,
		carrierMw: propagation.DbToRatio(*cfg.CarrierSenseDbm),
		minData:   p.Airtime(&p.Modes[p.NarrowFrom-1], dot11.MPDUBytes(dot11.EthernetHeaderBytes))}
	r, err := phy.RadioNamed(cfg.Radio, cfg.Standard)
	if err != nil {
		return nil, err
	}
	c.relocks = r.Relocks
	if c.ns2() {
		c.carrierMw, c.receiveMw = ns2CarrierSenseMw, ns2LeastReceiveMw(cfg.Propagation.RangeM)
	}
	if cfg.MPDUs && cfg.Promiscuous {
		return nil, errors.New("check medium: the nodes' own radios are not promiscuous")
	}
	if cfg.MPDUs {
		var is bool
		if c.mpdus, is = sink.(MPDUSink); !is {
			return nil, errors.New("check medium: frames of 802.11 for a sink that takes Ethernet's only")
		}
		c.minData = p.Airtime(&p.Modes[p.NarrowFrom-1], phy.ACKBytes)
	}
	if p.HT != nil { // a request, after which what waited is handed up, at the fastest of OFDM's rates
		c.minData = p.Airtime(&p.Modes[p.FirstData-1], ht.RequestBytes)
	}
	if c.links, err = newLinks(c); err != nil {
		return nil, err
	}
	if c.links.disc != nil {
		c.interferes = discInterferers
	}
	if err := c.addStations(); err != nil {
		return nil, err
	}
	for i, s := range c.stations {
		c.links.places[i].floorMw, c.links.places[i].channel = s.floorMw, s.channel
	}
	return c, nil
}

// ns2 reports whether receivers are ns-2's.
func (c *Core) ns2() bool { return c.phy.NS2 }

func (c *Core) addStations() error {
	fixed := -1
	if c.cfg.RateMbps != 0 {
		mode, err := c.phy.ModeIndex(c.cfg.RateMbps)
		if err != nil {
			return err
		}
		fixed, c.topMode = mode, mode
	} else {
		c.topMode = c.phy.NarrowFrom - 1
	}
	rates := c.newRateControls(fixed)
	for i, n := range c.cfg.Nodes {
		mac, err := ParseMAC(n.MAC)
		if err != nil {
			return fmt.Errorf("add node %q: %w", n.Name, err)
		}
		// A generator for each station: what happens on one channel changes
		// nothing on another.
		rng := rand.New(rand.NewPCG(c.cfg.Seed, 0x802_11<<32|uint64(i)))
		c.byMAC[mac] = i
		c.stations = append(c.stations, newStation(c, i, mac, n, rates(rng), rng))
	}
	return nil
}

// Now is the model time up to which the core has run.
func (c *Core) Now() time.Duration { return c.now }

// Enqueue gives a node's radio an Ethernet frame (copied) at Now. It reports
// whether the frame was taken; one that was not is counted in Lost.
func (c *Core) Enqueue(node int, ethernet []byte) bool {
	s := c.stations[node]
	c.lastFrame++
	if len(ethernet) < dot11.EthernetHeaderBytes ||
		len(ethernet)-dot11.EthernetHeaderBytes+dot11.LLCSNAPBytes > dot11.MaxMSDUBytes {
		c.refuse(s, c.lastFrame, ethernet, BadFrame)
		return false
	}
	if c.Full(node) {
		c.refuse(s, c.lastFrame, ethernet, QueueFull)
		return false
	}
	f := c.newFrame(ethernet)
	f.id = c.lastFrame
	if f.to == node {
		f.to = toNobody // a radio does not hear itself
	}
	if !c.ns2() {
		s.push(f)
	} else if !s.ns2Push(f) {
		c.refuse(s, f.id, ethernet, QueueFull)
		c.freeFrame(f)
		return false
	}
	s.count.Enqueued++
	c.trace(Trace{At: c.now, Event: "enqueue", Node: node, Peer: f.to, Frame: f.id, Kind: "data"})
	s.serveNext()
	return true
}

func (c *Core) refuse(s *station, id uint64, ethernet []byte, why Cause) {
	s.count.Lost[why]++
	c.trace(Trace{At: c.now, Event: "lost", Node: s.index, Peer: -1, Frame: id, Kind: "data", Cause: why})
	c.report(s.index, -1, ethernet, why, false)
}

// QueueRoom is how many more frames a node's queue takes now; of ns-2's, how many that DSR has no part in.
func (c *Core) QueueRoom(node int) int {
	room := c.cfg.QueueFrames - c.stations[node].queued()
	if c.ns2() {
		room--
	}
	return room
}

// Full reports whether a node's queue takes no frame now, whatever it is. That of ns-2 may always
// have room for routing's.
func (c *Core) Full(node int) bool { return !c.ns2() && c.QueueRoom(node) <= 0 }

// Advance runs every event up to and including a model time and leaves Now
// there. A time before Now runs nothing.
func (c *Core) Advance(to time.Duration) {
	for len(c.events.All()) > 0 && c.events.All()[0].At <= to {
		e := c.events.Pop()
		c.now = max(c.now, e.At)
		c.run(e)
	}
	c.now = max(c.now, to)
}

// run is the one dispatch of events.
func (c *Core) run(e event) {
	switch e.Kind() {
	case evTxEnd:
		c.endTx(c.txs[e.Node])
	case evDetect:
		c.detect(c.txs[e.Node])
	case evAccess:
		if s := c.stations[e.Node]; s.accessGen == e.Gen {
			s.access()
		}
	case evRespond:
		if s := c.stations[e.Node]; s.respondGen == e.Gen {
			s.respond()
		}
	case evTimeout:
		if s := c.stations[e.Node]; s.timeoutGen == e.Gen {
			s.timeout()
		}
	case evBeacon:
		if s := c.stations[e.Node]; s.beaconGen == e.Gen {
			s.sendBeacon()
		}
	case evRelease:
		c.stations[e.Node].release(int(e.Gen))
	case evUnheard:
		if s := c.stations[e.Node]; s.navGen == e.Gen {
			s.navEnds(e.At)
		}
	}
}

// NextEffect is a lower bound on the time of the next delivery, if anything is
// going on at all. A driver that sleeps until it and then advances misses
// nothing: what happens on the air before it is seen by no host.
func (c *Core) NextEffect() (time.Duration, bool) {
	earliest, any := time.Duration(math.MaxInt64), false
	events := c.events.All()
	for i := range events {
		e := &events[i]
		lead := time.Duration(0)
		switch e.Kind() {
		case evDetect:
			continue // its frame's end is in the queue too
		case evTxEnd:
			if k := c.txs[e.Node].kind; k != kindData && k != kindRequest && !(k == kindAck && c.cfg.MPDUs) {
				lead = c.phy.SIFS + c.minData
			}
		case evAccess:
			s := c.stations[e.Node]
			if s.accessGen != e.Gen {
				continue
			}
			lead = s.leastAirtime()
		case evRespond:
			if c.stations[e.Node].respondGen != e.Gen {
				continue
			}
			lead = c.minData
		case evUnheard, evBeacon:
			lead = c.minData
		case evTimeout:
			if c.stations[e.Node].timeoutGen != e.Gen {
				continue
			}
			if !c.cfg.MPDUs { // whose sender is told that its frame is given up
				lead = c.minData
			}
		}
		earliest, any = min(earliest, e.At+lead), true
	}
	return earliest, any
}

// SetDead switches the whole channel off (nothing is heard by anybody) or on.
// A frame on the air at that moment is lost.
func (c *Core) SetDead(dead bool) { c.dead = dead }

// SetTxPower changes a node's transmit power from its next frame on.
func (c *Core) SetTxPower(node int, txPowerDbm float64) {
	c.stations[node].txPowerDbm = txPowerDbm
	c.stations[node].txPowerMw = propagation.DbToRatio(txPowerDbm)
	c.stations[node].energyMw = c.energyMw(c.stations[node])
	c.expect(c.stations[node].receiver)
	c.links.forget(node)
}

// Counters is a node's count so far.
func (c *Core) Counters(node int) Counters { return c.stations[node].count }

func (c *Core) trace(t Trace) {
	if c.cfg.Trace != nil {
		c.cfg.Trace(t)
	}
}

func (c *Core) rate(mode int) float64 { return c.phy.Modes[mode].RateMbps }
