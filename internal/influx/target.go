package influx

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// PasswordVariable is the environment's way of giving a password; a command
// line would show it to everybody on the machine.
const PasswordVariable = "FIELDMESH_INFLUX_PASSWORD"

// Target is a database to write to. It prints without its password.
type Target struct {
	URL      string // http://HOST:PORT or https://…, no user in it
	Database string
	User     string // "" is no authentication; InfluxDB 2.x takes any
	Password string // InfluxDB 2.x: the token
}

// String is where the target is, for messages.
func (t Target) String() string { return fmt.Sprintf("database %q at %s", t.Database, t.place()) }

// GoString keeps the password from %#v too.
func (t Target) GoString() string { return t.String() }

// Validate says what is wrong with a target, without repeating a password.
func (t Target) Validate() error {
	u, err := url.Parse(t.URL)
	switch {
	case err != nil:
		// The error of url.Parse repeats its input, which may hold a password.
		return errors.New("influx url is not a URL: expected http://HOST:PORT")
	case u.User != nil:
		return fmt.Errorf("influx url for %q holds a user: take it out, and give it by --user and the "+
			"password by --password-file", u.Host)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("influx url %q: expected http://HOST:PORT or https://HOST:PORT", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("influx url for %q: no query is allowed in it", u.Host)
	case t.Database == "":
		return errors.New("influx database: missing")
	case strings.ContainsFunc(t.Database, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("influx database %q: control characters are not allowed", t.Database)
	case t.User == "" && t.Password != "":
		return errors.New("influx user: missing, though there is a password: name it by --user, for InfluxDB 2 with " +
			"any name, or leave --password-file out")
	}
	return nil
}

// private reports whether what is sent to a valid target stays on this machine, or is encrypted.
func (t Target) private() bool {
	u, err := url.Parse(t.URL)
	if err != nil || u.Scheme == "https" || u.Hostname() == "localhost" {
		return err == nil
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback()
}

// place is scheme, host and path.
func (t Target) place() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return "(not a URL)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}).String()
}

// endpoint is the address of a call.
func (t Target) endpoint(path string, query url.Values) string {
	return t.place() + path + "?" + query.Encode()
}

// ReadPassword gives the first line of a file that only its owner may read;
// without a file it is what PasswordVariable says.
func ReadPassword(path string) (string, error) {
	if path == "" {
		return os.Getenv(PasswordVariable), nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("read influx password: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return "", fmt.Errorf("read influx password %q: others may read it (mode %04o): chmod 600 %s", path, mode, path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read influx password: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", fmt.Errorf("read influx password %q: its first line is empty", path)
	}
	return line, nil
}
