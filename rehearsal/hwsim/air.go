package hwsim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Commands and attributes of the module's generic netlink family.
const (
	familyName    = "MAC80211_HWSIM"
	familyVersion = 1

	cmdRegister = 1
	cmdFrame    = 2
	cmdTxInfo   = 3
	cmdNewRadio = 4

	attrReceiver       = 1
	attrTransmitter    = 2
	attrFrame          = 3
	attrFlags          = 4
	attrRxRate         = 5
	attrSignal         = 6
	attrTxInfo         = 7
	attrCookie         = 8
	attrRegulatory     = 12
	attrDestroyOnClose = 16
	attrRadioName      = 17
	attrFrequency      = 19
	attrTxInfoFlags    = 21
	attrAddress        = 22
)

// The flags of a frame and of its outcome (enum hwsim_tx_control_flags).
const (
	flagNoACK = 1 << 1
	flagACK   = 1 << 2
)

// The flags of a rate (enum hwsim_tx_rate_flags).
const (
	rateRTS        = 1 << 0
	rateCTSProtect = 1 << 1
	rateMCS        = 1 << 3
	rate40MHz      = 1 << 5
	rateShortGI    = 1 << 7
	rateVHT        = 1 << 8
	rate80MHz      = 1 << 9
	rate160MHz     = 1 << 10
)

// tableRates is how many rates a frame comes with (IEEE80211_TX_MAX_RATES), and
// tableFlagBytes what the flags of one take.
const (
	tableRates     = 4
	tableFlagBytes = 3
)

// socketBytes is the room for frames that nobody has read yet: all that the radios
// of a large field may have under way.
const socketBytes = 8 << 20

// ErrNone says that the kernel has no such radios.
var ErrNone = errors.New("this kernel has no simulated 802.11 radios (MAC80211_HWSIM)")

// Air is the end of the air. NewRadio is for several goroutines, the rest for one
// at a time.
type Air struct {
	radios *radios
	fd     int
	family uint16
	seq    uint32
	buf    []byte

	// Refused counts what the kernel did not take: a frame for a radio that is down or
	// on another channel, an outcome of a frame that it has given up.
	Refused uint64

	// Wide: NewRadio makes radios for channels of 80 MHz.
	Wide bool
}

// Open takes the air of the radios that are made by it. It and they belong to the
// network namespace of the calling thread; the radios go when it is closed.
func Open() (*Air, error) {
	r, err := openRadios()
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("open simulated radios: %w", err)
	}
	a := &Air{radios: r, family: r.family.ID, buf: make([]byte, 1<<16), fd: -1}
	if err := a.register(); err != nil {
		return nil, errors.Join(fmt.Errorf("take the air of simulated radios: %w", err), a.Close())
	}
	return a, nil
}

func (a *Air) register() (err error) {
	a.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_GENERIC)
	if err != nil {
		return err
	}
	if err := unix.Bind(a.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(a.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketBytes); err != nil {
		return err
	}
	if err := a.send(cmdRegister, unix.NLM_F_ACK, nil); err != nil {
		return err
	}
	// The kernel answers before send returns.
	n, _, err := unix.Recvfrom(a.fd, a.buf, 0)
	if err != nil {
		return err
	}
	code, is := failure(a.buf[:n])
	if !is {
		return errors.New("no answer to the registration")
	}
	if code != 0 {
		return code
	}
	return nil
}

// Close lets the air and its radios go.
func (a *Air) Close() error {
	var err error
	if a.fd >= 0 {
		err = unix.Close(a.fd)
		a.fd = -1
	}
	return errors.Join(err, a.radios.close())
}

// FD is for waiting until Receive has something.
func (a *Air) FD() int { return a.fd }

// Frame is a frame that a radio sends.
type Frame struct {
	From   [6]byte // address of the radio
	Bytes  []byte  // from the MAC header on, without the FCS; until the next Receive
	MHz    int
	Rates  []Rate // at most four, in the order in which they are to be tried
	NoACK  bool
	Cookie uint64 // by which Report names it
}

// Rate is one of a frame's rates.
type Rate struct {
	Index int // in the band's table
	Times int
	RTS   bool
	// Foreign: a rate of 802.11n or later, or with a protection that is not RTS.
	Foreign bool
	// WidthMHz is of a rate of 802.11n or 802.11ac with the long guard interval, whose MCS Index is
	// (of 802.11ac: with 16 for each stream beyond the first); 0: any other.
	WidthMHz int
}

// Receive takes the next frame; unix.EAGAIN when there is none. Messages of other
// kinds come as ok false.
func (a *Air) Receive() (f Frame, ok bool, err error) {
	n, _, err := unix.Recvfrom(a.fd, a.buf, 0)
	if err != nil {
		return f, false, err
	}
	m := a.buf[:n]
	if code, is := failure(m); is {
		if code != 0 {
			a.Refused++
		}
		return f, false, nil
	}
	if len(m) < headersBytes || binary.NativeEndian.Uint16(m[4:]) != a.family || m[unix.NLMSG_HDRLEN] != cmdFrame {
		return f, false, nil // of a command that concerns no frames
	}
	f, err = decodeFrame(m[headersBytes:])
	return f, err == nil, err
}

// headersBytes are those of a message: netlink's and generic netlink's.
const headersBytes = unix.NLMSG_HDRLEN + unix.GENL_HDRLEN

// failure reads the code of an acknowledgement, 0 for success.
func failure(m []byte) (code syscall.Errno, is bool) {
	if len(m) < unix.NLMSG_HDRLEN+4 || binary.NativeEndian.Uint16(m[4:]) != unix.NLMSG_ERROR {
		return 0, false
	}
	return syscall.Errno(-int32(binary.NativeEndian.Uint32(m[unix.NLMSG_HDRLEN:]))), true
}

func decodeFrame(attributes []byte) (f Frame, err error) {
	d, err := netlink.NewAttributeDecoder(attributes)
	if err != nil {
		return f, fmt.Errorf("decode frame of a simulated radio: %w", err)
	}
	var table, flags []byte
	for d.Next() {
		switch d.Type() {
		case attrTransmitter:
			if b := d.Bytes(); len(b) == len(f.From) {
				f.From = [6]byte(b)
			}
		case attrFrame:
			f.Bytes = d.Bytes()
		case attrFrequency:
			f.MHz = int(d.Uint32())
		case attrFlags:
			f.NoACK = d.Uint32()&flagNoACK != 0
		case attrCookie:
			f.Cookie = d.Uint64()
		case attrTxInfo:
			table = d.Bytes()
		case attrTxInfoFlags:
			flags = d.Bytes()
		}
	}
	if err := d.Err(); err != nil {
		return f, fmt.Errorf("decode frame of a simulated radio: %w", err)
	}
	for i := 0; 2*i+1 < len(table) && int8(table[2*i]) >= 0; i++ {
		r := Rate{Index: int(int8(table[2*i])), Times: int(table[2*i+1])}
		if at := i*tableFlagBytes + 1; at+1 < len(flags) {
			bits := binary.NativeEndian.Uint16(flags[at:])
			r.RTS, r.Foreign = bits&rateRTS != 0, bits&(rateCTSProtect|rateMCS|rateVHT) != 0
			r.WidthMHz = widthMHz(bits)
		}
		f.Rates = append(f.Rates, r)
	}
	return f, nil
}

// widthMHz is a rate's by its flags.
func widthMHz(flags uint16) int {
	switch {
	case flags&(rateMCS|rateVHT) == 0 || flags&(rateShortGI|rate160MHz|rateCTSProtect) != 0:
		return 0
	case flags&rate80MHz != 0:
		return 80
	case flags&rate40MHz != 0:
		return 40
	}
	return 20
}

// Deliver hands a frame to a radio.
func (a *Air) Deliver(to [6]byte, frame []byte, rateIndex, mhz int, signalDbm int) error {
	return a.sendWith(cmdFrame, func(e *netlink.AttributeEncoder) {
		e.Bytes(attrReceiver, to[:])
		e.Bytes(attrFrame, frame)
		e.Uint32(attrRxRate, uint32(rateIndex))
		e.Uint32(attrSignal, uint32(int32(signalDbm)))
		e.Uint32(attrFrequency, uint32(mhz))
	})
}

// Outcome is how a frame ended.
type Outcome struct {
	Tried     int  // how often it was sent; 0: never
	ACK       bool // it was acknowledged
	Refused   bool // it was not for the air to carry: no failure of the radio's
	SignalDbm int  // of the ACK
}

// Report gives a radio the outcome of one of its frames.
func (a *Air) Report(f Frame, o Outcome) error {
	var flags uint32
	if f.NoACK || o.Refused {
		flags |= flagNoACK // counts neither as sent nor as failed
	}
	if o.ACK {
		flags |= flagACK
	}
	return a.sendWith(cmdTxInfo, func(e *netlink.AttributeEncoder) {
		e.Bytes(attrTransmitter, f.From[:])
		e.Uint32(attrFlags, flags)
		e.Uint32(attrSignal, uint32(int32(o.SignalDbm)))
		e.Bytes(attrTxInfo, tried(f.Rates, o.Tried))
		e.Uint64(attrCookie, f.Cookie)
	})
}

// tried is a rate table in which so many tries are used up: the last rate in it is
// that of the last try.
func tried(rates []Rate, times int) []byte {
	out := make([]byte, 0, 2*tableRates)
	for _, r := range rates {
		if times == 0 || len(out) == 2*tableRates {
			break
		}
		n := min(times, r.Times)
		times -= n
		out = append(out, byte(int8(r.Index)), byte(n))
	}
	for len(out) < 2*tableRates {
		out = append(out, 0xff, 0) // -1: no rate
	}
	return out
}

func (a *Air) sendWith(command uint8, f func(*netlink.AttributeEncoder)) error {
	e := netlink.NewAttributeEncoder()
	f(e)
	data, err := e.Encode()
	if err != nil {
		return fmt.Errorf("encode message to a simulated radio: %w", err)
	}
	return a.send(command, 0, data)
}

func (a *Air) send(command uint8, flags uint16, data []byte) error {
	a.seq++
	m := make([]byte, headersBytes, headersBytes+len(data))
	binary.NativeEndian.PutUint32(m[0:], uint32(headersBytes+len(data)))
	binary.NativeEndian.PutUint16(m[4:], a.family)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|flags)
	binary.NativeEndian.PutUint32(m[8:], a.seq)
	m[unix.NLMSG_HDRLEN], m[unix.NLMSG_HDRLEN+1] = command, familyVersion
	if err := unix.Sendto(a.fd, append(m, data...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("send message to a simulated radio: %w", err)
	}
	return nil
}

// radioName is what a radio is called: its address, which no other one has.
func radioName(mac net.HardwareAddr) string { return fmt.Sprintf("fm-%x", []byte(mac)) }
