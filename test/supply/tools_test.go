package supply

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	unread   = regexp.MustCompile(`(?m)(?:^|\s)#.*$|\\\n|\$\(\(.*?\)\)`)
	document = regexp.MustCompile(`(?s)<<-?'?END'?\n.*?\n\s*END\n`)
	keyword  = regexp.MustCompile(`\b(?:do|then|else|if|elif|while|exec|xargs)\s|!\s`)
	command  = regexp.MustCompile(`(?m)(?:^|[|&;{])[ \t]*(?:\w+=\S*[ \t]+)*([a-z][\w-]*)(?:[ \t;)|&]|$)`)
	needed   = regexp.MustCompile(`(?s)\nneeds\(\) \{.*?\n\}\n`)
)

// Of bash, and of packages that every Debian has.
var there = strings.Fields(`break case cd continue declare done echo esac exit export fi for kill local mapfile printf
	pwd read readonly return set shift trap true
	cat chmod chown comm cp dirname find grep install mkdir mktemp mv paste realpath rm sed sha256sum sort stat tail touch`)

// code is a script without comments, documents and what is quoted; what is in parentheses has lines of its own.
func code(script string) string {
	text := document.ReplaceAllString(unread.ReplaceAllString(script, ""), "\n")
	var out strings.Builder
	open := []byte{'('}
	for i := 0; i < len(text); i++ {
		c, in := text[i], open[len(open)-1]
		switch {
		case in == '\'' && c != in:
		case c == '\\':
			i++
		case c == ')' && in == '(' && len(open) > 1:
			open = open[:len(open)-1]
			out.WriteByte('\n')
		case c == '}' && in == '{', c == in && c != '(':
			open = open[:len(open)-1]
			out.WriteByte('"')
		case strings.HasPrefix(text[i:], "${"):
			open = append(open, '{')
			i++
		case c == '"', c == '\'' && in == '(':
			open = append(open, c)
		case c == '(' && (in == c || text[i-1] == '$'):
			open = append(open, c)
			out.WriteByte('\n')
		case in == '(':
			out.WriteByte(c)
		}
	}
	return keyword.ReplaceAllString(out.String(), "\n")
}

// called is what a script calls by name, apart from its own functions.
func called(script string) (names []string) {
	text := code(script)
	for _, m := range command.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(script, "\n"+m[1]+"() {") {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// What the scripts of the app call is on every machine, or scripts/setup installs it before they run.
func TestToolsOfTheAppsScriptsAreInstalled(t *testing.T) {
	setup, err := os.ReadFile("../../scripts/setup")
	if err != nil {
		t.Fatal(err)
	}
	for mode, scripts := range map[string][]string{
		"app":  {"maven", "ui/packaging/aars", "ui/packaging/apk", "ui/packaging/resources"},
		"test": {"agent-test", "ui/packaging/shrunk"},
	} {
		out, err := exec.Command("bash", "-c", "MODE="+mode+needed.FindString(string(setup))+"needs").Output()
		if err != nil {
			t.Fatal(err)
		}
		has := slices.Clone(there)
		for _, pair := range strings.Fields(string(out)) {
			_, tool, _ := strings.Cut(pair, ":")
			has = append(has, tool)
		}
		for _, name := range scripts {
			for _, tool := range called(read(t, name)) {
				if !slices.Contains(has, tool) {
					t.Errorf("android-app/%s calls %s, which scripts/setup %s does not install", name, tool, mode)
				}
			}
		}
	}
}
