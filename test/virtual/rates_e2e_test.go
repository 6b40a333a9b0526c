//go:build e2e

package virtual

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/rehearsal/hwsim"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/dot11"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/ht"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// ratedStandard is one whose rates both rate controls choose from, over paths one after the other.
type ratedStandard struct {
	name, standard, radio     string
	channel, widthMHz, centre int
	snrDb                     []float64 // in all of the channel; the last one swings by swingDb to both sides
	short                     int       // index of the path of the short test
}

const (
	swingDb     = 9
	swingPeriod = time.Second
)

var ratedStandards = []ratedStandard{
	{"802.11b", phy.Standard80211b, "", 1, 20, 2412, []float64{12, 7, 3, 0.5, -2, 4}, 4},
	{"802.11n, 20 MHz", phy.Standard80211n, phy.RadioHT20, 36, 20, 5180, []float64{22, 15.5, 11, 6, 2, 10}, 1},
	{"802.11n, 40 MHz", phy.Standard80211n, phy.RadioHT40, 36, 40, 5190, []float64{22, 15.5, 11, 6, 2, -1, 10}, 1},
	{"802.11ac, 80 MHz", phy.Standard80211ac, phy.RadioVHT80, 36, 80, 5210, []float64{28, 20, 12, 6, 0, -3, 10}, 1},
}

// standardNamed is one with all of its paths, or with the short test's.
func standardNamed(name string, all bool) ratedStandard {
	s := ratedStandards[slices.IndexFunc(ratedStandards, func(s ratedStandard) bool { return s.name == name })]
	if !all {
		s.snrDb = []float64{s.snrDb[s.short], s.snrDb[len(s.snrDb)-1]}
	}
	return s
}

const allPaths, somePaths = "all", "some"

// sent is what was on the air over one path, once the rate control had time to learn.
type sent struct {
	Data    map[string]float64 // tries by rate
	RTS     float64
	Arrived float64 // and was acknowledged
}

func (s ratedStandard) phy(t *testing.T) *phy.PHY {
	t.Helper()
	p, err := phy.New(phy.Config{Standard: s.standard, Radio: s.radio, Channel: s.channel, Narrower: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// path is the place among the paths, and whether it counts yet.
func (s ratedStandard) path(at time.Duration) (i int, counts bool) {
	return min(int(at/blockTime), len(s.snrDb)-1), at%blockTime >= blockLearns
}

func (s ratedStandard) snrDbAt(at time.Duration) float64 {
	i, _ := s.path(at)
	if i < len(s.snrDb)-1 {
		return s.snrDb[i]
	}
	return s.snrDb[i] + swingDb*math.Sin(2*math.Pi*float64(at)/float64(swingPeriod))
}

func (s ratedStandard) ends() time.Duration { return time.Duration(len(s.snrDb)) * blockTime }

func (s ratedStandard) none() []sent {
	out := make([]sent, len(s.snrDb))
	for i := range out {
		out[i].Data = map[string]float64{}
	}
	return out
}

// modelled is what the medium's own Minstrel sends.
func (s ratedStandard) modelled(t *testing.T, seed uint64) []sent {
	t.Helper()
	const txPowerDbm, noiseFigureDb, exponent = 20, 7, 3
	out, ended := s.none(), true
	cfg := medium.Config{Seed: seed, Standard: s.standard, Radio: s.radio, Channel: s.channel,
		Propagation: propagation.Config{Model: "log_distance", Exponent: exponent}}
	cfg.Trace = func(e medium.Trace) {
		i, counts := s.path(e.At)
		add := func(to *float64) {
			if counts {
				*to++
			}
		}
		switch {
		case e.Event == "rx" && e.Node == 0 && e.Kind == "ack":
			add(&out[i].Arrived)
			ended = true
		case e.Event != "tx" || e.Node != 0 || e.Peer != 1:
		case e.Kind == "data":
			if counts {
				out[i].Data[fmt.Sprint(e.RateMbps)]++
			}
		case e.Kind == "rts":
			add(&out[i].RTS)
		}
	}
	for i := range 2 {
		cfg.Nodes = append(cfg.Nodes, medium.NodeConfig{Name: fmt.Sprint(i), MAC: minstrelMAC(i).String(),
			TxPowerDbm: txPowerDbm, NoiseFigureDb: noiseFigureDb})
	}
	mhz, err := medium.FrequencyMHz(s.standard, s.channel)
	if err != nil {
		t.Fatal(err)
	}
	budgetDb := txPowerDbm - propagation.RatioToDb(s.phy(t).NoiseMw(noiseFigureDb)) -
		propagation.FreeSpace{FrequencyHz: float64(mhz) * 1e6}.LossDb(1, 0, 0)
	core, err := medium.NewCore(cfg, func(node int, at time.Duration) (xM, yM float64) {
		return float64(node) * math.Pow(10, (budgetDb-s.snrDbAt(at))/(10*exponent)), 0
	}, told{failed: func() { ended = true }})
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 14+frameBytes)
	copy(frame, minstrelMAC(1))
	copy(frame[6:], minstrelMAC(0))
	// Time is told in jiffies, so that the moment of the first frame counts.
	first := time.Duration(rand.New(rand.NewPCG(seed, 1)).Int64N(int64(frameEvery)))
	for at := first; at < s.ends(); at += frameEvery {
		core.Advance(at)
		if ended {
			ended = false
			core.Enqueue(0, frame)
		}
	}
	return out
}

// told says when a frame is given up.
type told struct {
	nobody
	failed func()
}

func (s told) TxFailed(int, time.Duration, medium.MAC, []byte) { s.failed() }

// link is what lies between the kernel's radio and its station: the physical layer of the medium, and its channel
// access where nobody else sends.
type link struct {
	*phy.PHY
	s    ratedStandard
	out  []sent
	free time.Duration // the backoff after the last frame has run down
	rng  *rand.Rand
}

// mode is the PHY's of a rate.
func (l *link) mode(r hwsim.Rate) int {
	if r.WidthMHz == 0 {
		for i, m := range l.Modes {
			if m.RateMbps == hwsim.RateMbps(l.s.centre, r.Index) {
				return i
			}
		}
		return -1
	}
	i := slices.Index([]int{20, 40, 80}, r.WidthMHz)
	if i >= len(l.Groups) || r.Index >= len(l.Groups[i]) {
		return -1
	}
	return l.Groups[i][r.Index]
}

// carry sends a frame as its rates have it, and returns after how many tries and when it ended.
func (l *link) carry(f hwsim.Frame, at time.Duration) (o hwsim.Outcome, ends time.Duration, err error) {
	bytes := len(f.Bytes) + dot11.FCSBytes
	if l.HT != nil && l.HT.Delimited {
		bytes += ht.DelimiterBytes
	}
	ends = max(at, l.free)
	window := l.CWMin
	backoff := func() time.Duration { return time.Duration(l.rng.IntN(window+1)) * l.Slot }
	for _, r := range f.Rates {
		mode := l.mode(r)
		if mode < 0 {
			return o, ends, fmt.Errorf("no such rate: %+v", r)
		}
		for range r.Times {
			if o.Tried++; o.Tried > 1 {
				window = min(2*window+1, l.CWMax)
				ends += backoff()
			}
			if ends, o.ACK = l.try(mode, bytes, r.RTS, ends); o.ACK {
				window = l.CWMin
				l.free = ends + l.IFS + backoff()
				return o, ends, nil
			}
		}
	}
	l.free = ends + backoff()
	return o, ends, nil
}

// try is one exchange.
func (l *link) try(mode, bytes int, rts bool, at time.Duration) (ends time.Duration, acknowledged bool) {
	answer := l.Modes[mode].Response
	took := func(mode, bytes int) time.Duration { return l.Airtime(&l.Modes[mode], bytes) }
	inVain := l.SIFS + l.Slot + l.PLCP(&l.Modes[answer])
	i, counts := l.s.path(at)
	if rts {
		if counts {
			l.out[i].RTS++
		}
		if at += took(answer, dot11.RTSBytes); !l.through(answer, dot11.RTSBytes, at) {
			return at + inVain, false
		}
		if at += l.SIFS + took(answer, dot11.CTSBytes); !l.through(answer, dot11.CTSBytes, at) {
			return at, false
		}
		at += l.SIFS
	}
	if counts {
		l.out[i].Data[fmt.Sprint(l.Modes[mode].RateMbps)]++
	}
	if at += took(mode, bytes); !l.through(mode, bytes, at) {
		return at + inVain, false
	}
	if at += l.SIFS + took(answer, phy.ACKBytes); !l.through(answer, phy.ACKBytes, at) {
		return at + l.EIFS, false
	}
	if counts {
		l.out[i].Arrived++
	}
	return at, true
}

func (l *link) through(mode, bytes int, at time.Duration) bool {
	snr := propagation.DbToRatio(l.s.snrDbAt(at))
	m := l.Modes[mode]
	return snr >= l.LockSNROf(&m) && l.rng.Float64() >= l.FrameErrorRate(m, snr, bytes)
}

// TestRatesOfTheKernel sends through radios of the kernel that it runs in, to stations that are not there.
func TestRatesOfTheKernel(t *testing.T) {
	if !isInside() {
		t.Skip("TestE2EMinstrelOfEveryStandard runs it in a kernel for virtual time")
	}
	runtime.GOMAXPROCS(2)
	air, err := hwsim.Open()
	if err != nil {
		t.Fatal(err)
	}
	given := os.Args[len(os.Args)-4:]
	dir, what, many := given[0], given[1], given[2]
	seed, err := strconv.ParseUint(given[3], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	s := standardNamed(what, many == allPaths)
	air.Wide = true
	l := &link{PHY: s.phy(t), s: s, out: s.none(), rng: rand.New(rand.NewPCG(seed, 2))}
	socket := s.accessPoint(t, air)
	payload := make([]byte, frameBytes-28)
	begins, next := time.Now().Add(time.Duration(l.rng.Int64N(int64(frameEvery)))), time.Duration(0)
	for next < s.ends() {
		time.Sleep(time.Until(begins.Add(next)))
		if _, err := socket.Write(payload); err != nil {
			t.Fatal(err)
		}
		ends := next
		for {
			f, ok, err := air.Receive()
			if errors.Is(err, unix.EAGAIN) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				continue
			}
			o := hwsim.Outcome{Refused: true}
			if net.HardwareAddr(f.Bytes[4:10]).String() == minstrelMAC(1).String() && f.Bytes[0]&0xc == 8 {
				if o, ends, err = l.carry(f, ends); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Until(begins.Add(ends)))
			}
			if err := air.Report(f, o); err != nil {
				t.Fatal(err)
			}
		}
		if ends == next {
			t.Fatalf("after %v the radio had no frame to send", next)
		}
		for next += frameEvery; next < ends; next += frameEvery {
		}
	}
	text, err := json.Marshal(l.out)
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, insideFile), text, 0o644), air.Close()); err != nil {
		t.Error(err)
	}
}

// accessPoint begins a network of a radio of the kernel, with a station that has the rates of the standard
// alone, of one stream and with the long guard interval, and returns a socket to it.
func (s ratedStandard) accessPoint(t *testing.T, air *hwsim.Air) net.Conn {
	t.Helper()
	ns := testnet.NewNS(t, "radio")
	handle, err := netns.GetFromName(ns.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(air.NewRadio(minstrelMAC(0), int(handle)), handle.Close()); err != nil {
		t.Fatal(err)
	}
	var socket net.Conn
	ns.Do(t, func() error {
		c, err := genetlink.Dial(nil)
		if err != nil {
			return err
		}
		defer c.Close()
		family, err := c.GetFamily(unix.NL80211_GENL_NAME)
		if err != nil {
			return err
		}
		link, err := net.InterfaceByName("wlan0")
		if err != nil {
			return err
		}
		do := func(command uint8, f func(e *netlink.AttributeEncoder)) error {
			e := netlink.NewAttributeEncoder()
			e.Uint32(unix.NL80211_ATTR_IFINDEX, uint32(link.Index))
			f(e)
			data, err := e.Encode()
			if err != nil {
				return err
			}
			_, err = c.Execute(genetlink.Message{Header: genetlink.Header{Command: command, Version: 1}, Data: data},
				family.ID, netlink.Request|netlink.Acknowledge)
			if err != nil {
				return fmt.Errorf("command %d: %w", command, err)
			}
			return nil
		}
		if err := do(unix.NL80211_CMD_SET_INTERFACE, func(e *netlink.AttributeEncoder) {
			e.Uint32(unix.NL80211_ATTR_IFTYPE, unix.NL80211_IFTYPE_AP)
		}); err != nil {
			return err
		}
		ns.Run(t, "ip", "link", "set", "wlan0", "up")
		ns.Run(t, "ip", "addr", "add", "10.77.0.1/24", "dev", "wlan0")
		ns.Run(t, "ip", "neigh", "replace", "10.77.0.2", "lladdr", minstrelMAC(1).String(), "dev", "wlan0")
		if err := do(unix.NL80211_CMD_START_AP, s.network); err != nil {
			return err
		}
		if err := do(unix.NL80211_CMD_NEW_STATION, s.station); err != nil {
			return err
		}
		socket, err = (&net.Dialer{}).Dial("udp4", "10.77.0.2:7000")
		return err
	})
	raw, err := socket.(*net.UDPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	// As voice frames are not aggregated: mac80211_hwsim tells no lengths of A-MPDUs.
	if err := errors.Join(raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY, 256+6)
	}), err); err != nil {
		t.Fatal(err)
	}
	return socket
}

// widths are nl80211's by MHz (enum nl80211_chan_width).
var widths = map[int]uint32{40: unix.NL80211_CHAN_WIDTH_40, 80: unix.NL80211_CHAN_WIDTH_80}

// The elements of a beacon (IEEE 802.11-2020, 9.4.2.1).
const (
	htOperation  = 61
	vhtOperation = 192
)

func (s ratedStandard) network(e *netlink.AttributeEncoder) {
	mac := minstrelMAC(0)
	head := slices.Concat([]byte{0x80, 0, 0, 0}, slices.Repeat([]byte{0xff}, 6), mac, mac, []byte{0, 0},
		make([]byte, 8), []byte{100, 0, 1, 0}, []byte{0, 4}, []byte("road"), []byte{1, byte(len(s.basic()))}, s.basic())
	e.Bytes(unix.NL80211_ATTR_BEACON_HEAD, head)
	if s.radio != "" {
		operation := make([]byte, 22)
		operation[0] = byte(s.channel)
		if s.widthMHz > 20 {
			operation[1] = 1 // the other 20 MHz are above
		}
		tail := append([]byte{htOperation, byte(len(operation))}, operation...)
		if s.widthMHz == 80 {
			tail = append(tail, vhtOperation, 5, 1, byte((s.centre-5000)/5), 0, 0xfe, 0xff)
		}
		e.Bytes(unix.NL80211_ATTR_BEACON_TAIL, tail)
	}
	e.Uint32(unix.NL80211_ATTR_BEACON_INTERVAL, 100)
	e.Uint32(unix.NL80211_ATTR_DTIM_PERIOD, 1)
	e.Bytes(unix.NL80211_ATTR_SSID, []byte("road"))
	mhz := s.centre
	if s.widthMHz > 20 {
		mhz = 5180
	}
	e.Uint32(unix.NL80211_ATTR_WIPHY_FREQ, uint32(mhz))
	width, wide := widths[s.widthMHz]
	switch {
	case wide:
		e.Uint32(unix.NL80211_ATTR_CENTER_FREQ1, uint32(s.centre))
	case s.radio != "":
		width = unix.NL80211_CHAN_WIDTH_20
	default:
		width = unix.NL80211_CHAN_WIDTH_20_NOHT
	}
	e.Uint32(unix.NL80211_ATTR_CHANNEL_WIDTH, width)
}

// basic are the rates beside MCS, in units of 0.5 Mbit/s.
func (s ratedStandard) basic() []byte {
	if s.radio == "" {
		return []byte{2, 4, 11, 22}
	}
	return []byte{12, 18, 24, 36, 48, 72, 96, 108}
}

func (s ratedStandard) station(e *netlink.AttributeEncoder) {
	e.Bytes(unix.NL80211_ATTR_MAC, minstrelMAC(1))
	e.Uint16(unix.NL80211_ATTR_STA_LISTEN_INTERVAL, 10)
	e.Uint16(unix.NL80211_ATTR_STA_AID, 1)
	e.Bytes(unix.NL80211_ATTR_STA_SUPPORTED_RATES, s.basic())
	set := uint32(1<<unix.NL80211_STA_FLAG_AUTHENTICATED | 1<<unix.NL80211_STA_FLAG_ASSOCIATED |
		1<<unix.NL80211_STA_FLAG_AUTHORIZED)
	if s.radio != "" {
		set |= 1 << unix.NL80211_STA_FLAG_WME
		has := make([]byte, 26)
		if s.widthMHz > 20 {
			has[0] = 1 << 1 // 20 and 40 MHz
		}
		has[3] = 0xff // MCS 0 to 7
		e.Bytes(unix.NL80211_ATTR_HT_CAPABILITY, has)
	}
	if s.widthMHz == 80 {
		vht := make([]byte, 12)
		for _, at := range []int{4, 8} { // MCS 0 to 9 of one stream, received and sent
			binary.LittleEndian.PutUint16(vht[at:], 0xfffe)
		}
		e.Bytes(unix.NL80211_ATTR_VHT_CAPABILITY, vht)
	}
	flags := binary.NativeEndian.AppendUint32(nil, set)
	e.Bytes(unix.NL80211_ATTR_STA_FLAGS2, binary.NativeEndian.AppendUint32(flags, set))
}

// kernels is what minstrel_ht of the kernel for virtual time sends.
func (s ratedStandard) kernels(t *testing.T, seed uint64, paths string) (out []sent) {
	t.Helper()
	findWithin(t, seed, &out, "TestRatesOfTheKernel", s.name, paths, strconv.FormatUint(seed, 10))
	return out
}

// What the medium's Minstrel sends at each SNR with the rates of 802.11b, 802.11n and 802.11ac is what the
// kernel's minstrel_ht sends, as TestE2EMinstrelIsTheKernels has it for 802.11a. By chance a figure is beyond five
// standard errors, of a spread that 30 seeds tell (t with 29 degrees of freedom), once in 39,000; there are some 320.
func TestE2EMinstrelOfEveryStandard(t *testing.T) { compareStandards(t, 6, 30, allPaths) }

// The same of two paths of each, and of what the rates come to. With 20 seeds (t with 19 degrees of freedom) a figure
// is beyond once in 12,600; there are 24.
func TestE2EMinstrelOfEveryStandardInShort(t *testing.T) { compareStandards(t, 1, 20, somePaths) }

func compareStandards(t *testing.T, boots, seeds uint64, paths string) {
	const standardErrors, leastShare, leastAirtime = 5, 0.002, 0.005 // the last one: of the model's
	t.Logf("the kernel's seeds are 1 to %d, the model's 1 to %d", boots, seeds)
	for _, v := range ratedStandards {
		t.Run(v.name, func(t *testing.T) {
			s := standardNamed(v.name, paths == allPaths)
			var kernels, models [][]sent
			for seed := range boots {
				kernels = append(kernels, s.kernels(t, seed+1, paths))
			}
			for seed := range seeds {
				models = append(models, s.modelled(t, seed+1))
			}
			figures := sums
			if paths == allPaths {
				figures = append(s.rates(t), sums...)
			}
			for i, snrDb := range s.snrDb {
				where := fmt.Sprintf("%g dB", snrDb)
				if i == len(s.snrDb)-1 {
					where = "swinging"
				}
				for _, what := range figures {
					theirs, ours := s.column(kernels, i, what), s.column(models, i, what)
					least := leastShare
					if what == airtime {
						mean, _ := meanAndSpread(ours)
						least = leastAirtime * mean
					}
					if all := slices.Concat(theirs, ours); slices.Min(all) != 0 || slices.Max(all) != 0 {
						sameMeanWithin(t, where+", "+what, theirs, ours, standardErrors, least)
					}
				}
			}
		})
	}
}

// sums are what is compared beside the shares of data frames at each rate: RTS and what arrived for each data
// frame, and the airtime of the data for each that arrived.
var sums = []string{"RTS", "arrived", airtime}

const airtime = "airtime, ms"

// rates are those of data, by Mbit/s: two widths may have the same.
func (s ratedStandard) rates(t *testing.T) (out []string) {
	p := s.phy(t)
	for _, modes := range p.Groups {
		for _, mode := range modes {
			if name := fmt.Sprint(p.Modes[mode].RateMbps); !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

func (s ratedStandard) column(runs [][]sent, path int, figure string) (out []float64) {
	for _, r := range runs {
		tries, airtimeMs := 0.0, 0.0
		for rate, n := range r[path].Data {
			var mbps float64
			fmt.Sscan(rate, &mbps)
			tries += n
			airtimeMs += n * (0.02 + 8*(frameBytes+36)/mbps/1e3)
		}
		switch figure {
		case "RTS":
			out = append(out, r[path].RTS/tries)
		case "arrived":
			out = append(out, r[path].Arrived/tries)
		case airtime:
			out = append(out, airtimeMs/r[path].Arrived)
		default:
			out = append(out, r[path].Data[figure]/tries)
		}
	}
	return out
}
