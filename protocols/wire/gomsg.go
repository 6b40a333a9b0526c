package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
)

// The types of a Go. GoArm has a peer make itself ready, where no controller
// has, and sets no start.
const (
	GoStart = "go"
	GoArm   = "arm"
)

// Go is the datagram by which the initiator starts a trial, and Ack its
// answer. Both are JSON followed by a 32-byte HMAC-SHA256 under the run's key.
//
// Whoever hears a GO can send it again. One for another node, of a trial in which
// its receiver takes no part, of a run that has ended or of an attempt that has
// ended is not obeyed. Of the GOs of an attempt that is armed the earliest start
// counts until it is there: it is that of the least delayed, and a GO that
// somebody sends again can only name a later one. A GO that would arm its
// receiver, or end what it does, has to be new: it repeats the challenge that the
// receiver gave in its last Ack.
type Go struct {
	Type      string `json:"type"` // GoStart or GoArm
	Run       string `json:"run"`
	Trial     int    `json:"trial"`
	Attempt   int    `json:"attempt"`
	From      string `json:"from"`
	To        string `json:"to"`
	Exchange  uint64 `json:"exchange"`         // random, the same in all repetitions
	Nonce     uint64 `json:"nonce"`            // rises with each repetition
	StartInUs int64  `json:"start_in_us"`      // from the moment it is received to the window's opening
	Answer    uint64 `json:"answer,omitempty"` // the challenge of To's last Ack
}

// Ack answers a Go. Ready is false, with the reason, when its sender cannot
// take part; the initiator then does not open the window. Waiting, in answer to
// GoArm, is what the sender still waits for before it can. With a Challenge it is
// no word of its sender's yet: the Go is to be sent again with the Challenge in it.
type Ack struct {
	Type      string `json:"type"` // "ack"
	Run       string `json:"run"`
	Trial     int    `json:"trial"`
	Attempt   int    `json:"attempt"`
	From      string `json:"from"`
	Of        string `json:"of"`       // the type of the Go that it answers
	Exchange  uint64 `json:"exchange"` // that Go's
	Nonce     uint64 `json:"nonce"`    // that Go's
	Ready     bool   `json:"ready"`
	Ended     bool   `json:"ended,omitempty"` // the run has, and only a controller takes it up
	Reason    string `json:"reason,omitempty"`
	Waiting   string `json:"waiting,omitempty"`
	Challenge uint64 `json:"challenge,omitempty"`
}

// MaxDatagram bounds a GO or an Ack.
const MaxDatagram = 1024

// ErrForged is returned for a datagram whose authentication does not hold.
var ErrForged = errors.New("datagram is not authentic")

// Seal encodes a Go or an Ack and authenticates it.
func Seal(key []byte, message any) ([]byte, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("encode datagram: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return mac.Sum(body), nil
}

// Open checks a datagram's authentication and decodes it into message.
func Open(key, datagram []byte, message any) error {
	if len(datagram) <= sha256.Size || len(datagram) > MaxDatagram {
		return fmt.Errorf("open datagram of %d bytes: %w", len(datagram), ErrForged)
	}
	body, sum := datagram[:len(datagram)-sha256.Size], datagram[len(datagram)-sha256.Size:]
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	if !hmac.Equal(sum, mac.Sum(nil)) {
		return ErrForged
	}
	if err := json.Unmarshal(body, message); err != nil {
		return fmt.Errorf("decode datagram: %w", err)
	}
	return nil
}
