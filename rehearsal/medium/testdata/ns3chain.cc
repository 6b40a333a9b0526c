// A chain in ns-3.44, nodes 200 m apart, one flow of 512 bytes from end to end. Its ranges are those of ns-2's radio:
// 250 m to receive, 550 m to sense.
//
//	ns3chain HOPS KIND N PAUSE RETRIES SECONDS
//
// KIND: cbr, a datagram every N us, or tcp, NewReno with a window of N segments. PAUSE us pass from the end of a
// frame's reception until IP has its packet. RETRIES is how often a frame is sent. Prints the payload that arrived in
// so many SECONDS, from 5 s after the start on, in kbit/s; the mean time that a datagram took, in us, where it is
// less than N; and how many frames were given up.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <cmath>
#include <deque>
#include <iostream>

using namespace ns3;

namespace
{

const double spacingM = 200;
const double firstS = 1; // when the flow begins
const int bytes = 512;

int64_t
Now()
{
    return Simulator::Now().GetNanoSeconds();
}

// ReceivedDbm is what arrives from ns-2's 281.8 mW between antennas 1.5 m high.
double
ReceivedDbm(double metres)
{
    return 10 * std::log10(281.83815 * std::pow(1.5 / metres, 4));
}

const double sensedDbm = ReceivedDbm(550.1);

struct Transmission
{
    int node;
    int64_t begins, ends; // ns

    // Hops is how far a node is.
    int Hops(int to) const
    {
        return std::abs(node - to);
    }

    // Light is how long it takes to a node.
    int64_t Light(int to) const
    {
        return std::llround(Hops(to) * spacingM / 299792458 * 1e9);
    }
};

const int64_t longest = 5000000; // ns, more than a frame and light's way
std::deque<Transmission> air;     // those of the last `longest`, and what is on the air

// Receiver loses what ns-2's thresholds lose: what comes from farther than the next node, and what another frame
// meets that is not 10 dB weaker, as one from the next but one is. ns-3's error rates of DSSS are not in it: they let
// one of two frames of equal power through, and some of those from 400 m.
class Receiver : public ErrorModel
{
  public:
    explicit Receiver(int node)
        : m_node(node)
    {
    }

  private:
    bool DoCorrupt(Ptr<Packet>) override
    {
        const Transmission* frame = nullptr;
        for (const auto& t : air)
        {
            bool ended = std::llabs(t.ends + t.Light(m_node) - Now()) <= 2;
            if (ended && t.node != m_node && (!frame || t.Hops(m_node) < frame->Hops(m_node)))
            {
                frame = &t;
            }
        }
        NS_ABORT_MSG_IF(!frame, "a frame was received that nobody sent");
        if (frame->Hops(m_node) > 1)
        {
            return true;
        }
        for (const auto& t : air)
        {
            int64_t light = t.Light(m_node);
            if (&t != frame && t.Hops(m_node) <= 1 && t.begins + light < Now() &&
                t.ends + light > frame->begins + frame->Light(m_node))
            {
                return true;
            }
        }
        return false;
    }

    void DoReset() override
    {
    }

    int m_node;
};

NetDeviceContainer devices;

// Busy reports whether a node senses at a time, from now on, what is on the air there now.
bool
Busy(int node, int64_t at)
{
    static double ofHops[64]; // what comes from so far, by what is sensed
    double sum = 0;
    for (const auto& t : air)
    {
        int hops = t.Hops(node);
        if (hops > 0 && t.begins + t.Light(node) <= Now() && t.ends + t.Light(node) > at)
        {
            if (ofHops[hops] == 0)
            {
                ofHops[hops] = std::pow(10, (ReceivedDbm(hops * spacingM) - sensedDbm) / 10);
            }
            sum += ofHops[hops];
        }
    }
    return sum >= 1;
}

// TellBusy tells a node's MAC until when its channel is busy. ns-3.44 forgets it: the last word of its PHY counts, and
// that is 48 us of a header where a frame of 2.5 ms is on the air as well. The MAC then sends, while the PHY knows
// better.
void
TellBusy(int node)
{
    int64_t until = Now();
    for (const auto& t : air)
    {
        int64_t ends = t.ends + t.Light(node);
        if (ends > until && Busy(node, ends - 1))
        {
            until = ends;
        }
    }
    if (until > Now())
    {
        DynamicCast<WifiNetDevice>(devices.Get(node))
            ->GetMac()
            ->GetChannelAccessManager()
            ->NotifyCcaBusyStartNow(NanoSeconds(until - Now()), WIFI_CHANLIST_PRIMARY, {});
    }
}

void
Sent(int node, WifiConstPsduMap psdus, WifiTxVector vector, double)
{
    auto lasts = WifiPhy::CalculateTxDuration(psdus.begin()->second, vector, WIFI_PHY_BAND_2_4GHZ).GetNanoSeconds();
    air.push_back({node, Now(), Now() + lasts});
    while (air.front().ends < Now() - longest)
    {
        air.pop_front();
    }
    // The PHY's words come with the frame, when its preamble is found, before and after its header, and with its end.
    for (int i = 0; i < int(devices.GetN()); i++)
    {
        for (int64_t ns : {int64_t(0), int64_t(4000), int64_t(144000), int64_t(192000), lasts})
        {
            Simulator::Schedule(NanoSeconds(ns + air.back().Light(i) + 1), &TellBusy, i);
        }
    }
}

int64_t pauseUs, everyNs;
uint64_t arrived, datagrams, gaveUp;
double tookNs;

bool
Pause(Ptr<NetDevice> device, Ptr<const Packet> packet, uint16_t protocol, const Address& from)
{
    Simulator::Schedule(MicroSeconds(pauseUs), &Ipv4L3Protocol::Receive, device->GetNode()->GetObject<Ipv4L3Protocol>(),
                        device, packet, protocol, from, device->GetAddress(), NetDevice::PACKET_HOST);
    return true;
}

void
Arrived(Ptr<const Packet> packet, const Address&)
{
    arrived += packet->GetSize();
    datagrams++;
    tookNs += everyNs ? (Now() - int64_t(firstS * 1e9)) % everyNs : 0;
}

void
GaveUp(WifiMacDropReason, Ptr<const WifiMpdu>)
{
    gaveUp++;
}

} // namespace

int
main(int argc, char** argv)
{
    NS_ABORT_MSG_IF(argc != 7, "ns3chain HOPS KIND N PAUSE RETRIES SECONDS");
    const int hops = std::stoi(argv[1]), n = std::stoi(argv[3]);
    const bool tcp = std::string(argv[2]) == "tcp";
    pauseUs = std::stoi(argv[4]);
    const int retries = std::stoi(argv[5]);
    const double seconds = std::stod(argv[6]);

    NodeContainer nodes(hops + 1);
    auto places = CreateObject<ListPositionAllocator>();
    for (int i = 0; i <= hops; i++)
    {
        places->Add(Vector(spacingM * i, 0, 0));
    }
    MobilityHelper mobility;
    mobility.SetPositionAllocator(places);
    mobility.Install(nodes);

    auto channel = CreateObject<YansWifiChannel>();
    channel->SetPropagationLossModel(CreateObjectWithAttributes<TwoRayGroundPropagationLossModel>(
        "Frequency", DoubleValue(914e6), "HeightAboveZ", DoubleValue(1.5)));
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());
    YansWifiPhyHelper phy;
    phy.SetChannel(channel);
    const double powerDbm = 10 * std::log10(281.83815);
    phy.Set("TxPowerStart", DoubleValue(powerDbm));
    phy.Set("TxPowerEnd", DoubleValue(powerDbm));
    // What is sensed is noticed, too, so that EIFS follows what cannot be read. Of frames that begin at once the
    // strongest is noticed, also if another is as strong: by ns-3's own 4 dB none would be, and no EIFS would follow.
    for (const auto* key : {"RxSensitivity", "CcaEdThreshold", "CcaSensitivity"})
    {
        phy.Set(key, DoubleValue(sensedDbm));
    }
    phy.Set("RxNoiseFigure", DoubleValue(0));
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel", "MinimumRssi", DoubleValue(sensedDbm),
                                  "Threshold", DoubleValue(-30));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    // ns-3 answers a frame of 2 Mbit/s at 2 Mbit/s, the highest mandatory rate up to its own, whatever is basic.
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", StringValue("DsssRate2Mbps"),
                                 "ControlMode", StringValue("DsssRate2Mbps"), "RtsCtsThreshold", UintegerValue(0));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac", "QosSupported", BooleanValue(false));
    devices = wifi.Install(phy, mac, nodes);
    InternetStackHelper().Install(nodes);
    auto addresses = Ipv4AddressHelper("10.0.0.0", "255.255.0.0").Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    NeighborCacheHelper().PopulateNeighborCache();
    for (int i = 0; i <= hops; i++)
    {
        auto device = DynamicCast<WifiNetDevice>(devices.Get(i));
        device->GetPhy()->SetPostReceptionErrorModel(CreateObject<Receiver>(i));
        device->GetPhy()->TraceConnectWithoutContext("PhyTxPsduBegin", MakeCallback(&Sent).Bind(i));
        device->GetMac()->SetFrameRetryLimit(retries);
        device->GetMac()->TraceConnectWithoutContext("DroppedMpdu", MakeCallback(&GaveUp));
        auto queue = device->GetMac()->GetTxopQueue(AC_BE_NQOS);
        queue->SetAttribute("MaxSize", StringValue("50p"));
        queue->SetAttribute("MaxDelay", StringValue("1000s"));
        if (pauseUs > 0)
        {
            device->SetReceiveCallback(MakeCallback(&Pause));
        }
        auto routes = Ipv4StaticRoutingHelper().GetStaticRouting(nodes.Get(i)->GetObject<Ipv4>());
        for (int j = 0; j <= hops; j++)
        {
            if (j != i)
            {
                routes->AddHostRouteTo(addresses.GetAddress(j), addresses.GetAddress(j > i ? i + 1 : i - 1), 1);
            }
        }
    }

    const std::string protocol = tcp ? "ns3::TcpSocketFactory" : "ns3::UdpSocketFactory";
    const InetSocketAddress to(addresses.GetAddress(hops), 9);
    ApplicationContainer source;
    if (tcp)
    {
        Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
        Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(bytes));
        Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(bytes * n));
        Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
        for (const auto* option : {"Timestamp", "Sack", "WindowScaling"})
        {
            Config::SetDefault(std::string("ns3::TcpSocketBase::") + option, BooleanValue(false));
        }
        BulkSendHelper bulk(protocol, to);
        bulk.SetAttribute("SendSize", UintegerValue(bytes));
        source = bulk.Install(nodes.Get(0));
    }
    else
    {
        everyNs = int64_t(n) * 1000;
        UdpClientHelper client(to);
        client.SetAttribute("MaxPackets", UintegerValue(0)); // without end
        client.SetAttribute("Interval", TimeValue(NanoSeconds(everyNs)));
        client.SetAttribute("PacketSize", UintegerValue(bytes));
        source = client.Install(nodes.Get(0));
    }
    source.Start(Seconds(firstS));
    auto sink = PacketSinkHelper(protocol, to).Install(nodes.Get(hops));
    sink.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Arrived));

    Simulator::Stop(Seconds(firstS + 5));
    Simulator::Run();
    arrived = datagrams = gaveUp = 0;
    tookNs = 0;
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    std::cout << arrived * 8 / 1000 / seconds << " " << tookNs / 1000 / datagrams << " " << gaveUp << std::endl;
}
