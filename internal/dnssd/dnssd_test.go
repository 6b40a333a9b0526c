package dnssd

import (
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"fieldmesh.dev/fieldmesh/test/fuzz"
)

var (
	pin     = strings.Repeat("0123456789abcdef", 4)
	service = Service{Pin: pin, Port: 7443}
	here    = []netip.Prefix{netip.MustParsePrefix("192.168.43.7/24")}
)

const id = "0123456789abcdef0123456789abcdef"

func question(name string, kind dnsmessage.Type, class dnsmessage.Class) dnsmessage.Message {
	return dnsmessage.Message{Header: dnsmessage.Header{ID: 77}, Questions: []dnsmessage.Question{{
		Name: dnsmessage.MustNewName(name), Type: kind, Class: class}}}
}

func packed(t testing.TB, m dnsmessage.Message) []byte {
	t.Helper()
	out, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ask returns the answer, in words, nil for none.
func ask(t testing.TB, m dnsmessage.Message, plain bool) (reply *dnsmessage.Message, alone bool) {
	t.Helper()
	raw, alone := service.answer(packed(t, m), plain, here)
	if raw == nil {
		return nil, false
	}
	reply = &dnsmessage.Message{}
	if err := reply.Unpack(raw); err != nil {
		t.Fatal(err)
	}
	return reply, alone
}

func TestOneAnswerHasAllThatIsAskedFor(t *testing.T) {
	reply, alone := ask(t, question("_FieldMesh._tcp.local.", dnsmessage.TypePTR, dnsmessage.ClassINET), false)
	if reply == nil || alone || reply.ID != 0 || len(reply.Questions) != 0 || !reply.Response || !reply.Authoritative {
		t.Fatalf("answer %+v, for the asker alone: %t", reply, alone)
	}
	if len(reply.Answers) != 1 || reply.Answers[0].Body.(*dnsmessage.PTRResource).PTR.String() !=
		id+"._fieldmesh._tcp.local." || reply.Answers[0].Header.Class != dnsmessage.ClassINET {
		t.Errorf("answers %+v", reply.Answers)
	}
	var srv, txt, a bool
	for _, r := range reply.Additionals {
		if r.Header.Class != dnsmessage.ClassINET|topBit || r.Header.TTL != 10 {
			t.Errorf("%+v is kept beside others, or for long", r.Header)
		}
		switch b := r.Body.(type) {
		case *dnsmessage.SRVResource:
			srv = b.Port == 7443 && b.Target.String() == id+".local."
		case *dnsmessage.TXTResource:
			txt = len(b.TXT) == 1 && b.TXT[0] == "pin="+pin
		case *dnsmessage.AResource:
			a = b.A == [4]byte{192, 168, 43, 7}
		}
	}
	if !srv || !txt || !a {
		t.Errorf("additionals %+v", reply.Additionals)
	}
}

func TestEachRecordIsAnsweredForItself(t *testing.T) {
	instance, host := id+"._fieldmesh._tcp.local.", id+".local."
	for _, q := range []struct {
		name    string
		kind    dnsmessage.Type
		answers int
	}{
		{instance, dnsmessage.TypeSRV, 1}, {instance, dnsmessage.TypeTXT, 1}, {instance, dnsmessage.TypeALL, 2},
		{host, dnsmessage.TypeA, 1}, {host, dnsmessage.TypeAAAA, 0}, {"_http._tcp.local.", dnsmessage.TypePTR, 0},
		{"other._fieldmesh._tcp.local.", dnsmessage.TypeSRV, 0},
	} {
		reply, alone := ask(t, question(q.name, q.kind, dnsmessage.ClassINET|topBit), false)
		got := 0
		if reply != nil {
			got = len(reply.Answers)
		}
		if got != q.answers || alone != (q.answers > 0) {
			t.Errorf("%s %s: %d answers, alone: %t, want %d", q.name, q.kind, got, alone, q.answers)
		}
	}
}

// A plain DNS client understands neither the top bit nor an answer without its question.
func TestPlainAskersGetCommonDNS(t *testing.T) {
	reply, alone := ask(t, question(Type+zone, dnsmessage.TypePTR, dnsmessage.ClassINET), true)
	if reply == nil || !alone || reply.ID != 77 || len(reply.Questions) != 1 {
		t.Fatalf("answer %+v, for the asker alone: %t", reply, alone)
	}
	for _, r := range reply.Additionals {
		if r.Header.Class != dnsmessage.ClassINET {
			t.Errorf("class %d of %s", r.Header.Class, r.Header.Type)
		}
	}
}

func TestWhatIsNoQuestionIsNotAnswered(t *testing.T) {
	right := question(Type+zone, dnsmessage.TypePTR, dnsmessage.ClassINET)
	answer, status, failed, other := right, right, right, right
	answer.Response, status.OpCode, failed.RCode = true, 2, dnsmessage.RCodeNameError
	other.Questions = []dnsmessage.Question{{Name: right.Questions[0].Name, Type: dnsmessage.TypePTR,
		Class: dnsmessage.ClassCHAOS}}
	for name, m := range map[string]dnsmessage.Message{"answer": answer, "status": status, "failed": failed,
		"class": other, "empty": {}} {
		if reply, _ := ask(t, m, false); reply != nil {
			t.Errorf("%s: answered by %+v", name, reply)
		}
	}
	whole := packed(t, right)
	for n := range whole {
		if reply, _ := service.answer(whole[:n], false, here); reply != nil {
			t.Errorf("%d bytes of a question are answered", n)
		}
	}
}

func TestWhatTheAskerKnowsIsNotSaid(t *testing.T) {
	for ttl, answered := range map[uint32]bool{10: false, 5: false, 4: true} {
		m := question(Type+zone, dnsmessage.TypePTR, dnsmessage.ClassINET)
		m.Answers = []dnsmessage.Resource{service.records(here, false)[0]}
		m.Answers[0].Header.TTL = ttl
		if reply, _ := ask(t, m, false); (reply != nil) != answered {
			t.Errorf("known for %d s: answer %+v", ttl, reply)
		}
	}
}

func TestWhereSomebodyListens(t *testing.T) {
	for at, listens := range map[string]bool{"::": true, "0.0.0.0": true, "192.168.43.7": true,
		"::ffff:192.168.43.7": true, "192.168.43.8": false, "127.0.0.1": false} {
		if got := Listens(netip.MustParseAddr(at), here); got != listens {
			t.Errorf("%s: %t", at, got)
		}
	}
}

//attack:network messages made to break the multicast DNS responder | they are read within their own bytes
func FuzzAnswer(f *testing.F) {
	f.Add(packed(f, question(Type+zone, dnsmessage.TypePTR, dnsmessage.ClassINET)))
	known := question(id+"."+Type+zone, dnsmessage.TypeALL, dnsmessage.ClassANY|topBit)
	known.Answers = service.records(here, false)
	f.Add(packed(f, known))
	f.Add([]byte("\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x0c\x00\x01"))
	fuzz.Run(f, func(t *testing.T, message []byte) {
		reply, _ := service.answer(message, false, here)
		if reply == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(reply); err != nil || !m.Response || len(m.Answers) == 0 {
			t.Errorf("answer %x: %v", reply, err)
		}
	})
}
