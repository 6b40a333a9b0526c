package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// sample is a change of a kind with its undo, as agents in the field have it in
// their journals: JSON, laid out on lines. What it says is never changed.
type sample struct {
	scope, change, undo string
	undone              string // what a restore in a later boot says of it
}

// inNetns stands for the boot and the namespace of a sample's undo.
const inNetns = `"world":{"boot":"4f2a9f0e-0b7e-4a7c-9d55-0c1de0b6a001","netns":4026531840,"cookie":1}`

// What a restore in a later boot adds.
const (
	netnsGone   = " (its namespace or boot is gone)"
	processGone = " (it went with the process that had loaded it)"
)

// samples have every kind of change and every part of an undo, in an order in
// which changes are made. A new kind's goes to the end.
func samples() []sample {
	return []sample{
		{ScopeRun, `{"virtual":{"interface":"wlan0","beside":"wlan9","mode":"adhoc","channel":6}}`,
			`{
				"virtual":{
					"interface":"wlan0","mac":"1e:11:22:33:44:55","beside":"wlan9","index":2,
					"rts_threshold_bytes":4294967295,"retry_short":7,"retry_long":4,"power_save":true,
					"mhz":2437,"tx_power_dbm":20
				}
			}`,
			"interface wlan0 beside wlan9" + netnsGone},
		{ScopeRun, `{"aside":{"interface":"wlan0"}}`,
			`{
				"aside":{
					"interface":"wlan0","index":3,
					"held":[
						{
							"manager":"NetworkManager","interface":"wlan0",
							"connection":"6f3a2b1c-0000-4000-8000-000000000001"
						}
					],
					"made":true
				},
				"interface":{
					"name":"wlan0","index":3,"up":true,"mtu_bytes":1500,"addresses":["AhiAAAMAAAA="],
					"routes":["AhgAAP4E/QEAAAAA"]
				}
			}`,
			"managers of wlan0 aside" + netnsGone},
		{ScopeRun, `{"sysctl":{"key":"net.ipv6.conf.wlan0.disable_ipv6","value":"1"}}`,
			`{
				"sysctls":[{"parts":["net","ipv6","conf","wlan0","disable_ipv6"],"value":"0","interface":"wlan0","index":3}],
				"interface":{
					"name":"wlan0","index":3,"up":true,"mtu_bytes":1500,"addresses":["AhiAAAMAAAA="],
					"routes":["AhgAAP4E/QEAAAAA"]
				}
			}`,
			"sysctl net.ipv6.conf.wlan0.disable_ipv6=1" + netnsGone},
		{ScopeRun, `{
				"radio":{
					"interface":"wlan0","mode":"ap","standard":"802.11g","channel":6,"ssid":"fieldmesh",
					"rate_mbps":5.5,"tx_power_dbm":12,"rts_threshold_bytes":500,"retry_limit":4,
					"keep":"10.77.0.0/24"
				}
			}`,
			`{
				"radio":{
					"interface":"wlan0","index":3,"mode":"adhoc",
					"network":{
						"Mode":"adhoc","SSID":"home","BSSID":"02:11:22:33:44:55","MHz":2412,
						"Width":"20 MHz (no HT)","BasicMbps":[1,2],"McastMbps":0
					},
					"tx_power_dbm":20,"power_save":true,"rts_threshold_bytes":4294967295,"retry_short":7,
					"retry_long":4,"rates_mhz":2437,"joins_ssid":"fieldmesh"
				},
				"interface":{
					"name":"wlan0","index":3,"up":true,"mtu_bytes":1500,"addresses":["AhiAAAMAAAA="],
					"routes":["AhgAAP4E/QEAAAAA"]
				},
				"access_point":{
					"name":"wpa_supplicant","binary":"/usr/sbin/wpa_supplicant",
					"dir":"/var/lib/fieldmesh-nowhere/daemons/4-wpa_supplicant","interface":"wlan0",
					"index":3,"route_protocol":0
				}
			}`,
			`radio wlan0 ap "fieldmesh" 802.11g channel 6 rate 5.5 Mbit/s power 12 dBm rts 500 retries 4` + netnsGone},
		{ScopeRun, `{
				"radio":{
					"interface":"wlan0","mode":"adhoc","standard":"802.11b","channel":1,"ssid":"fieldmesh",
					"bssid":"02:11:22:33:44:55","keep":"10.77.0.0/24"
				}
			}`,
			`{
				"radio":{
					"interface":"wlan0","index":3,"mode":"managed","power_save":false,
					"rts_threshold_bytes":4294967295,"retry_short":7,"retry_long":4,"rates_mhz":2412
				},
				"interface":{
					"name":"wlan0","index":3,"up":true,"mtu_bytes":1500,"addresses":["AhiAAAMAAAA="],
					"routes":["AhgAAP4E/QEAAAAA"]
				}
			}`,
			`radio wlan0 adhoc "fieldmesh" 802.11b channel 1 bssid 02:11:22:33:44:55` + netnsGone},
		{ScopeRun, `{"link":{"interface":"wlan0","up":true,"mtu_bytes":1400}}`,
			`{
				"interface":{
					"name":"wlan0","index":3,"up":true,"mtu_bytes":1500,"addresses":["AhiAAAMAAAA="],
					"routes":["AhgAAP4E/QEAAAAA"]
				}
			}`,
			"link wlan0 up mtu 1400" + netnsGone},
		{ScopeRun, `{"address":{"interface":"wlan0","prefix":"10.77.0.1/24"}}`,
			`{"address":{"interface":"wlan0","prefix":"10.77.0.1/24","index":3}}`,
			"address 10.77.0.1/24 on wlan0" + netnsGone},
		{ScopeRun, `{"address":{"interface":"wlan0","prefix":"10.77.0.9/24"}}`,
			`{}`,
			"address 10.77.0.9/24 on wlan0" + netnsGone},
		{ScopeTrial, `{
				"route":{
					"destination":"10.77.3.0/24","interface":"wlan0","via":"10.77.0.2","source":"10.77.0.1",
					"metric":5,"congestion":"reno","quick_ack":true
				}
			}`,
			`{
				"route":{
					"destination":"10.77.3.0/24","interface":"wlan0","via":"10.77.0.2","source":"10.77.0.1",
					"metric":5,"congestion":"reno","quick_ack":true,"index":3,"former":["AhgAAP4E/QEAAAAA"]
				}
			}`,
			"route 10.77.3.0/24 via 10.77.0.2 dev wlan0 src 10.77.0.1 metric 5 congctl reno quickack 1" + netnsGone},
		{ScopeTrial, `{"sysctl":{"key":"net.ipv4.tcp_congestion_control","value":"reno"}}`,
			`{
				"sysctls":[
					{"parts":["net","ipv4","tcp_congestion_control"],"value":"cubic"},
					{"parts":["net","ipv4","tcp_allowed_congestion_control"],"value":"reno cubic"}
				]
			}`,
			"sysctl net.ipv4.tcp_congestion_control=reno" + netnsGone},
		{ScopeTrial, `{"bpf_congestion":{"program":"tahoe"}}`,
			`{"loaded":{"key":"bpf congestion control tahoe","congestion":"fm_tahoe_1"}}`,
			"bpf congestion control tahoe" + processGone},
		{ScopeTrial, `{"held_rto":{"peers":"10.77.0.0/24","reference":true}}`,
			`{"loaded":{"key":"held rto"}}`,
			"reference timer for peers in 10.77.0.0/24" + processGone},
		{ScopeTrial, `{"window_clamp":{"peers":"10.77.0.0/24","segments":8}}`,
			`{"loaded":{"key":"window clamp"}}`,
			"window of 8 segments for peers in 10.77.0.0/24" + processGone},
		{ScopeTrial, `{"tcp_events":{"flows":[{"port":5000,"client_port":5100,"streams":2,"server":true}]}}`,
			`{"loaded":{"key":"tracepoints of tcp"}}`,
			"tracepoints of 2 connections" + processGone},
		{ScopeTrial, `{"offloads":{"interface":"wlan0"}}`,
			`{"offloads":{"interface":"wlan0","index":3,"changed":[16384,0],"former":[16384,0]}}`,
			"offloads of wlan0 off" + netnsGone},
		{ScopeTrial, `{
				"admission":{
					"own":"10.77.0.1",
					"flows":[{"peer":"10.77.0.2","port":5000,"client_port":5100,"streams":2,"server":true}]
				}
			}`,
			`{"admission":{"table":"fieldmesh-admission"}}`,
			"admission of 1 flows at 10.77.0.1" + netnsGone},
		{ScopeTrial, `{"daemon":{"name":"babeld","interface":"wlan0","announce":"10.77.0.0/24","hello_s":0.5,"quick_ack":true}}`,
			`{
				"daemon":{
					"name":"babeld","binary":"/usr/sbin/babeld",
					"dir":"/var/lib/fieldmesh-nowhere/daemons/17-babeld","interface":"wlan0","index":3,
					"former":["AiAAAP4qAAEAAAAA"],"route_protocol":42
				},
				"sysctls":[
					{"parts":["net","ipv4","ip_forward"],"value":"0"},
					{"parts":["net","ipv4","conf","wlan0","rp_filter"],"value":"2","interface":"wlan0","index":3}
				]
			}`,
			"daemon babeld on wlan0 announcing 10.77.0.0/24 quickack 1" + netnsGone},
		{ScopeTrial, `{"daemon":{"name":"batman-adv","interface":"wlan0","announce":"10.77.0.0/24"}}`,
			`{
				"daemon":{
					"name":"batman-adv","binary":"/usr/bin/fieldmesh-agent",
					"dir":"/var/lib/fieldmesh-nowhere/daemons/18-batman-adv","interface":"wlan0","index":3,
					"route_protocol":0
				},
				"mesh":{"device":"bat0","below":3,"made":["AhgAAP4C/QEAAAAA"]},
				"interface":{
					"name":"wlan0","index":3,"up":true,"mtu_bytes":1500,"addresses":["AhiAAAMAAAA="],
					"routes":["AhgAAP4E/QEAAAAA"]
				}
			}`,
			"daemon batman-adv on wlan0 announcing 10.77.0.0/24" + netnsGone},
	}
}

// body is the sample's undo, with the namespace that it is of.
func (s sample) body() []byte {
	joined := inNetns
	if rest := strings.TrimSuffix(strings.TrimPrefix(s.undo, "{"), "}"); strings.TrimSpace(rest) != "" {
		joined += "," + rest
	}
	return []byte("{" + joined + "}")
}

// sampleJournal is a journal of all samples.
func sampleJournal(t testing.TB) []byte {
	t.Helper()
	var out []byte
	for i, s := range samples() {
		var line bytes.Buffer
		text := fmt.Sprintf(`{"id":%d,"state":"prepared","scope":%q,"change":%s,"undo":%s}`, i+1, s.scope, s.change, s.body())
		if err := json.Compact(&line, []byte(text)); err != nil {
			t.Fatalf("sample %d, of %q: %v", i+1, s.undone, err)
		}
		out = append(out, seal(line.Bytes())...)
	}
	return out
}
