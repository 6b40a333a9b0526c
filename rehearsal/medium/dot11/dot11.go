// Package dot11 reads and writes frames of IEEE 802.11, as far as a radio looks into them: how long they are, whose
// beacon one is, and what it carries.
package dot11

import (
	"bytes"
	"encoding/binary"
	"time"
)

// Sizes of IEEE 802.11-2020 clause 9.3 and of the LLC/SNAP header that replaces
// the Ethernet header's type (RFC 1042).
const (
	EthernetHeaderBytes = 14
	HeaderBytes         = 24
	FCSBytes            = 4
	LLCSNAPBytes        = 8
	QoSBytes            = 2
	CTSBytes            = 14
	RTSBytes            = 20
	MaxMSDUBytes        = 2304 // 9.2.4.7.1
)

// MPDUBytes is the length on the air of an Ethernet frame.
func MPDUBytes(ethernetBytes int) int {
	return ethernetBytes - EthernetHeaderBytes + LLCSNAPBytes + HeaderBytes + FCSBytes
}

// The frame control field and what follows it (9.2.4.1), as far as it is looked at here.
const (
	controlToDS      = 1 << 0 // of its second byte
	controlFromDS    = 1 << 1
	controlRetry     = 1 << 3
	controlProtected = 1 << 6

	typeData      = 2
	subtypeBeacon = 8
	subtypeNull   = 1 << 2 // of data frames: without data
	subtypeQoS    = 1 << 3

	addressBytes = 6
	aMSDU        = 1 << 7 // of the QoS control field
	meshControl  = 1 << 0 // of its second byte, in a mesh
	meshBytes    = 6      // of the Mesh Control field (9.2.4.7.3): flags, TTL, number
	meshMore     = 3      // of its flags: how many addresses follow

	// A beacon's fixed fields: timestamp, interval, capabilities (9.3.3.2).
	beaconInterval     = HeaderBytes + 8
	beaconCapabilities = beaconInterval + 2
	capabilityIBSS     = 1 << 1
)

// TimeUnit is the unit of a beacon's interval.
const TimeUnit = 1024 * time.Microsecond

// ShortestMPDU has a frame control, a duration and a receiver.
const ShortestMPDU = 2 + 2 + addressBytes

// LongestMPDU has four addresses in its header, and a mesh's control field with two more.
const LongestMPDU = HeaderBytes + addressBytes + QoSBytes + meshBytes + 2*addressBytes + MaxMSDUBytes

// SetRetry has a frame say that it is sent again. It may be empty.
func SetRetry(frame []byte) {
	if len(frame) > 1 {
		frame[1] |= controlRetry
	}
}

// BeaconKind is whose beacon a frame is.
type BeaconKind uint8

// The kinds of beacons.
const (
	NoBeacon   BeaconKind = iota
	CellBeacon            // of an ad hoc cell, one for all stations
	OwnBeacon             // of a station of a mesh, or of an access point
)

// BeaconOf tells by its first bits and its capabilities whose beacon a frame is. The bit of an ad
// hoc cell is 0 in a mesh (9.4.1.4).
func BeaconOf(frame []byte) BeaconKind {
	switch {
	case len(frame) <= beaconCapabilities || frame[0] != subtypeBeacon<<4:
		return NoBeacon
	case frame[beaconCapabilities]&capabilityIBSS != 0:
		return CellBeacon
	}
	return OwnBeacon
}

// SameCell reports whether two beacons, as BeaconOf knows them, have one BSSID, their third address.
func SameCell(a, b []byte) bool {
	const at = 4 + 2*addressBytes
	return bytes.Equal(a[at:at+addressBytes], b[at:at+addressBytes])
}

// BeaconInterval is the time from one beacon to the next.
func BeaconInterval(beacon []byte) time.Duration {
	return TimeUnit * time.Duration(binary.LittleEndian.Uint16(beacon[beaconInterval:]))
}

// DelayBeacon adds to the time that a beacon bears.
func DelayBeacon(beacon []byte, by time.Duration) {
	at := beacon[HeaderBytes:]
	binary.LittleEndian.PutUint64(at, binary.LittleEndian.Uint64(at)+uint64(by.Microseconds()))
}

// AppendEthernet makes an Ethernet frame of a data frame (RFC 1042), for what looks into it; nothing of any other, and
// of one that is encrypted or aggregated. The frame has ShortestMPDU bytes at least. What a mesh carries for others has
// their addresses in its own control field (9.2.4.7.3).
func AppendEthernet(out, frame []byte) []byte {
	kind, subtype, flags := frame[0]>>2&3, frame[0]>>4, frame[1]
	if kind != typeData || subtype&subtypeNull != 0 || flags&controlProtected != 0 || len(frame) < HeaderBytes {
		return out
	}
	address := func(n int) []byte { return frame[4+n*addressBytes:][:addressBytes] }
	dst, src, header := address(0), address(1), HeaderBytes
	if flags&controlToDS != 0 {
		dst = frame[16:22]
	}
	switch {
	case flags&controlFromDS != 0 && flags&controlToDS != 0:
		header += addressBytes
		if len(frame) < header {
			return out
		}
		src = frame[HeaderBytes:header]
	case flags&controlFromDS != 0:
		src = frame[16:22]
	}
	if subtype&subtypeQoS != 0 {
		if len(frame) < header+QoSBytes+meshBytes || frame[header]&aMSDU != 0 {
			return out
		}
		inMesh := frame[header+1]&meshControl != 0
		if header += QoSBytes; inMesh {
			more := int(frame[header]&meshMore) * addressBytes
			header += meshBytes
			if len(frame) < header+more {
				return out
			}
			switch more {
			case addressBytes:
				src = frame[header:][:addressBytes]
			case 2 * addressBytes:
				dst, src = frame[header:][:addressBytes], frame[header+addressBytes:][:addressBytes]
			}
			header += more
		}
	}
	if len(frame) < header+LLCSNAPBytes || binary.BigEndian.Uint32(frame[header:]) != llcSnap {
		return out
	}
	return append(append(append(out, dst...), src...), frame[header+LLCSNAPBytes-2:]...)
}

// llcSnap begins the header before an Ethernet type.
const llcSnap = 0xaaaa0300
