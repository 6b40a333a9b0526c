package supply

import (
	"encoding/xml"
	"slices"
	"strings"
	"testing"
)

// executions is what a part of a pom.xml has Maven run.
type executions struct {
	All []struct {
		ID        string   `xml:"id"`
		Arguments []string `xml:"configuration>arguments>argument"`
	} `xml:"build>plugins>plugin>executions>execution"`
}

// The long build runs all that the everyday one does, and more: its profile changes none of the everyday commands.
func TestTheProfileAllOnlyAdds(t *testing.T) {
	for _, module := range readPom(t, ".").Modules {
		var p struct {
			executions
			Profiles []struct {
				ID string `xml:"id"`
				executions
				Properties struct {
					All []struct{ XMLName xml.Name } `xml:",any"`
				} `xml:"properties"`
			} `xml:"profiles>profile"`
		}
		if err := xml.Unmarshal([]byte(read(t, module, "pom.xml")), &p); err != nil {
			t.Fatal(err)
		}
		for _, profile := range p.Profiles {
			if profile.ID != "all" {
				continue
			}
			for _, always := range p.All {
				for _, e := range profile.All {
					if e.ID == always.ID {
						t.Errorf("%s/pom.xml: the profile all replaces the execution %s", module, e.ID)
					}
				}
				for _, property := range profile.Properties.All {
					used := "${" + property.XMLName.Local + "}"
					if slices.ContainsFunc(always.Arguments, func(a string) bool { return strings.Contains(a, used) }) {
						t.Errorf("%s/pom.xml: the profile all gives %s another %s", module, always.ID, used)
					}
				}
			}
		}
	}
}
