package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// browsers are the programs that can print a page to a file, by the names that
// their packages give them.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge",
	"brave-browser"}

// printTime is how long a browser may take to print a report.
const printTime = 3 * time.Minute

// PDF prints a report with a browser of this machine, and returns the path of
// report.pdf beside it.
func PDF(ctx context.Context, report string) (path string, err error) {
	browser, err := findBrowser()
	if err != nil {
		return "", err
	}
	report, err = filepath.Abs(report)
	if err != nil {
		return "", fmt.Errorf("print %q: %w", report, err)
	}
	dir, err := os.MkdirTemp("", "fieldmesh-print-")
	if err != nil {
		return "", fmt.Errorf("print %q: %w", report, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	printed := filepath.Join(dir, "report.pdf")
	page := url.URL{Scheme: "file", Path: report}
	args := []string{"--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--no-pdf-header-footer", "--user-data-dir=" + filepath.Join(dir, "profile"), "--print-to-pdf=" + printed,
		page.String()}
	if os.Geteuid() == 0 {
		// Chromium does not start as root otherwise. The page is this program's own.
		args = append([]string{"--no-sandbox"}, args...)
	}
	ctx, cancel := context.WithTimeout(ctx, printTime)
	defer cancel()
	c := exec.CommandContext(ctx, browser, args...)
	c.WaitDelay = 10 * time.Second
	said, failed := c.CombinedOutput()
	pdf, err := os.ReadFile(printed)
	if err == nil && !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		err = errors.New("what it printed is no PDF")
	}
	if failed != nil || err != nil {
		return "", fmt.Errorf("print %q with %s: %w\n%s", report, browser, errors.Join(failed, err, ctx.Err()),
			strings.TrimSpace(string(said[max(0, len(said)-2000):])))
	}
	path = pdfOf(report)
	return path, ReplaceFile(path, func(w io.Writer) error {
		_, err := w.Write(pdf)
		return err
	})
}

// pdfOf is where a report is printed to.
func pdfOf(report string) string { return strings.TrimSuffix(report, ".html") + ".pdf" }

func findBrowser() (string, error) {
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("report.pdf is printed by a browser, and none of %s is here: install one, as by `apt "+
		"install chromium`, or open report.html in yours and print it to a file", strings.Join(browsers, ", "))
}
