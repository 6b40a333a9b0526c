package change

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/process"
)

// olsrd is the daemon that community networks ran for years; few
// distributions have a package of it.
const olsrd = "olsrd"

// protocolOlsrd marks its routes, which it leaves to its configuration
// (RtProto); it is none of rt_protos'.
const protocolOlsrd = 110

// olsrdJSONPort is that of its plugin jsoninfo, which tells neighbours and
// routes.
const olsrdJSONPort = 9090

// olsrdConfig is olsrd's whole configuration. Each node has a lock file of its
// own: the default is one for the machine, whatever the network namespace.
func olsrdConfig(_ *Kernel, d Daemon, u process.Daemon) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "DebugLevel 0\nIpVersion 4\nAllowNoInt yes\nRtProto %d\n", protocolOlsrd)
	fmt.Fprintf(&b, "LockFile %q\n", filepath.Join(u.Dir, "lock"))
	// The kernel's settings are the host process's, with their undo.
	b.WriteString("SetIpForward no\nClearScreen no\n")
	fmt.Fprintf(&b, "LoadPlugin \"olsrd_jsoninfo.so.1.1\"\n{\n PlParam \"port\" \"%d\"\n PlParam \"accept\" "+
		"\"127.0.0.1\"\n}\n", olsrdJSONPort)
	fmt.Fprintf(&b, "Interface %q\n{\n", d.Interface)
	if d.HelloS != nil {
		// Validity three times the interval: RFC 3626, section 18.3.
		fmt.Fprintf(&b, " HelloInterval %s\n HelloValidityTime %s\n", seconds(*d.HelloS), seconds(3**d.HelloS))
	}
	b.WriteString("}\n")
	return b.String(), nil
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 2, 64) }

// olsrdAnswers connects to its plugin.
func olsrdAnswers(process.Daemon) error {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", olsrdJSONPort), time.Second)
	if err != nil {
		return errors.Join(err)
	}
	return conn.Close()
}
