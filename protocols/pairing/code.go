// Package pairing is what a new node, or the phone app, and the controller say
// to each other so that their keys become known to each other: the one-time
// code, the two messages, the proofs in them, and the TLS that they go over.
// README.md beside it describes all of it for another language.
//
// Who waits for whom, and what is done with a key that came through, is
// elsewhere: controller/pairing offers, node-agent/pairing joins.
package pairing

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Valid is how long a code is good for, at most.
const Valid = 5 * time.Minute

// Lengths of a code's parts, in bytes. Half a SHA-256 is enough of a hash here:
// a forger needs a second key to a given hash, 2^128 tries, within Valid.
const (
	secretBytes = 16
	hashBytes   = 16
	checkBytes  = 3
	codeBytes   = secretBytes + hashBytes + checkBytes // 56 characters of base 32, without padding
)

// Code is a one-time code: where the controller waits, by which key it is to be
// known, and the secret that shows who was given the code.
type Code struct {
	Address string // host:port
	secret  [secretBytes]byte
	hash    [hashBytes]byte // the first half of the controller's pin
}

// New makes a code for a controller that waits at address and has the pin.
func New(address, pin string) (Code, error) {
	c := Code{Address: address}
	if err := checkAddress(address); err != nil {
		return Code{}, err
	}
	whole, err := hex.DecodeString(pin)
	if err != nil || len(whole) != sha256.Size {
		return Code{}, fmt.Errorf("make code: %.80q is not a pin", pin)
	}
	copy(c.hash[:], whole)
	if _, err := rand.Read(c.secret[:]); err != nil {
		return Code{}, fmt.Errorf("make code: %w", err)
	}
	return c, nil
}

// scheme begins a code. All of a code is within the alphanumeric set of QR
// codes (ISO/IEC 18004, 7.4.4), which makes the picture small; IPv6 addresses
// in brackets are not, and cost a larger one.
const scheme = "FIELDMESH-PAIR/"

// String is the code in one word, as a QR code carries it.
func (c Code) String() string {
	return scheme + strings.ToUpper(c.Address) + "/" + c.body()
}

// Groups is the code as a person reads and types it, in groups of four.
func (c Code) Groups() string {
	var b strings.Builder
	for i, r := range c.body() {
		if i > 0 && i%4 == 0 {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return scheme + strings.ToUpper(c.Address) + "/" + b.String()
}

// body is secret, hash and check in base 32 (RFC 4648, section 6).
func (c Code) body() string {
	data := append(c.secret[:], c.hash[:]...)
	return base32.StdEncoding.EncodeToString(append(data, checkOf(data)...))
}

// checkOf tells a mistyped code from a forged one: without it a wrong letter in
// the hash would look like somebody in the middle.
func checkOf(data []byte) []byte {
	sum := sha256.Sum256(data)
	return sum[:checkBytes]
}

// The forms are compiled when they are first asked for: they take 400 kB, and
// most processes of an agent never ask.
var codeForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^` + scheme + `([^/]{1,255})/([A-Z2-7]{56})$`)
})

// ErrMistyped is returned for a code that was not copied right.
var ErrMistyped = errors.New("a letter of the code is wrong or missing; compare it with the one that is shown")

// Parse reads a code that was typed, pasted or scanned. Blanks and hyphens in
// its last part, and upper or lower case, do not matter.
func Parse(text string) (Code, error) {
	text = strings.Join(strings.Fields(strings.ToUpper(text)), "")
	if i := strings.LastIndexByte(text, '/'); i >= 0 {
		text = text[:i+1] + strings.ReplaceAll(text[i+1:], "-", "")
	}
	parts := codeForm().FindStringSubmatch(text)
	if parts == nil {
		if strings.HasPrefix(text, scheme) {
			return Code{}, fmt.Errorf("read code: %w", ErrMistyped)
		}
		return Code{}, fmt.Errorf("read code: a code begins with %s; `fieldmesh keys pair` shows one", scheme)
	}
	data, err := base32.StdEncoding.DecodeString(parts[2])
	if err != nil || len(data) != codeBytes || !bytes.Equal(checkOf(data[:codeBytes-checkBytes]),
		data[codeBytes-checkBytes:]) {
		return Code{}, fmt.Errorf("read code: %w", ErrMistyped)
	}
	c := Code{Address: strings.ToLower(parts[1])}
	copy(c.secret[:], data)
	copy(c.hash[:], data[secretBytes:])
	return c, checkAddress(c.Address)
}

var hostForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9:.-]{1,253}$`) })

func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil && !hostForm().MatchString(host) {
		err = fmt.Errorf("%q is no host", host)
	}
	if err == nil {
		var n uint64
		if n, err = strconv.ParseUint(port, 10, 16); err == nil && n == 0 {
			err = errors.New("port 0")
		}
	}
	if err != nil {
		return fmt.Errorf("check address %.80q of a code: %w", address, err)
	}
	return nil
}

// Is reports whether a pin is the one whose hash the code carries.
func (c Code) Is(pin string) bool {
	whole, err := hex.DecodeString(pin)
	return err == nil && len(whole) == sha256.Size && bytes.Equal(whole[:hashBytes], c.hash[:])
}
