// Package sumline writes and reads lines that begin with their checksum, so that
// damage to a file is found line by line:
//
//	crc32c SP text LF
//
// What the text is, is its writer's business; it holds no line feed.
package sumline

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
)

// Overhead is how many bytes a line has beside its text.
const Overhead = 8 + 1 + 1

// castagnoli is CRC-32C (RFC 3720, appendix B.4), which processors compute.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append appends a line with text to buf.
func Append(buf, text []byte) []byte {
	buf = append(appendSum(buf, text), ' ')
	return append(append(buf, text...), '\n')
}

// Text returns the text of a line, given without its line feed; false when it is damaged.
func Text(line []byte) (text []byte, ok bool) {
	if len(line) < Overhead-1 || line[8] != ' ' {
		return nil, false
	}
	text = line[9:]
	return text, string(appendSum(nil, text)) == string(line[:8])
}

func appendSum(buf, text []byte) []byte {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(text, castagnoli))
	return hex.AppendEncode(buf, sum[:])
}
