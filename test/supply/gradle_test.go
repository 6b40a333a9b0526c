package supply

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const app = "../../android-app"

// pom is of a pom.xml what Gradle's files say too.
type pom struct {
	Version    string   `xml:"version"`
	Modules    []string `xml:"modules>module"`
	Properties struct {
		All []struct {
			XMLName xml.Name
			Text    string `xml:",chardata"`
		} `xml:",any"`
	} `xml:"properties"`
	Managed []dependency `xml:"dependencyManagement>dependencies>dependency"`
	Has     []dependency `xml:"dependencies>dependency"`
}

type dependency struct {
	Group    string `xml:"groupId"`
	Artifact string `xml:"artifactId"`
	Version  string `xml:"version"`
}

func readPom(t *testing.T, module string) (p pom) {
	t.Helper()
	if err := xml.Unmarshal([]byte(read(t, module, "pom.xml")), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(slices.Insert(path, 0, app)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Lines of gradle/libs.versions.toml, and of a build.gradle.kts what it depends on.
var (
	versionLine = regexp.MustCompile(`(?m)^([\w-]+) = "([^"]+)"$`)
	libraryLine = regexp.MustCompile(`(?m)^([\w-]+) = \{ module = "([^"]+)", version\.ref = "([\w-]+)" \}$`)
	dependsLine = regexp.MustCompile(`(?m)^    (?:api|implementation|testImplementation)\(libs\.([\w.]+)\)$`)
	needsModule = regexp.MustCompile(`(?m)^    (?:api|implementation|testImplementation)\(project\((?:path = )?":(\w+)"`)
	included    = regexp.MustCompile(`include\((.*)\)`)
)

// What Gradle's files for Android Studio say is what Maven builds: versions, modules, and what each depends on.
func TestGradlesFilesSayWhatMavensDo(t *testing.T) {
	top, catalog := readPom(t, "."), read(t, "gradle/libs.versions.toml")
	is := map[string]string{"project": top.Version}
	for _, p := range top.Properties.All {
		is[strings.ReplaceAll(strings.TrimSuffix(p.XMLName.Local, ".version"), ".", "-")] = p.Text
	}
	for _, m := range versionLine.FindAllStringSubmatch(catalog, -1) {
		if name := m[1]; name != "agp" && is[name] != m[2] {
			t.Errorf("gradle/libs.versions.toml has %s %q, and pom.xml %q", name, m[2], is[name])
		}
	}
	libraries := map[string]string{}
	for _, m := range libraryLine.FindAllStringSubmatch(catalog, -1) {
		libraries[strings.ReplaceAll(m[1], "-", ".")] = m[2]
		if !slices.ContainsFunc(top.Managed, func(d dependency) bool {
			return d.Group+":"+d.Artifact == m[2] && d.Version == "${"+m[3]+".version}"
		}) {
			t.Errorf("pom.xml has no %s of the version %s", m[2], m[3])
		}
	}
	if list := included.FindStringSubmatch(read(t, "settings.gradle.kts")); list == nil ||
		list[1] != `"`+strings.Join(top.Modules, `", "`)+`"` {
		t.Errorf("settings.gradle.kts includes %q, and pom.xml has the modules %q", list, top.Modules)
	}
	for _, module := range top.Modules {
		var want, got []string
		for _, d := range readPom(t, module).Has {
			if d.Artifact != "android-all" { // Gradle's plugin brings the platform
				want = append(want, d.Group+":"+d.Artifact)
			}
		}
		text := read(t, module, "build.gradle.kts")
		for _, m := range dependsLine.FindAllStringSubmatch(text, -1) {
			got = append(got, libraries[m[1]])
		}
		for _, m := range needsModule.FindAllStringSubmatch(text, -1) {
			got = append(got, "dev.fieldmesh:"+m[1])
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s/build.gradle.kts depends on\n%q, and pom.xml on\n%q", module, got, want)
		}
	}
}
