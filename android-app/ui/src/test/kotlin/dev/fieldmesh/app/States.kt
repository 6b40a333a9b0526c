package dev.fieldmesh.app

import dev.fieldmesh.app.MainActivity.Tab
import dev.fieldmesh.core.Maps
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.AttachmentsWaiting
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.app.CampaignState
import dev.fieldmesh.core.app.Mark
import dev.fieldmesh.core.app.Peer
import dev.fieldmesh.core.app.TrackPoint
import dev.fieldmesh.core.app.TrackState
import dev.fieldmesh.core.cue.Band
import dev.fieldmesh.core.cue.Zone
import dev.fieldmesh.core.drive.DriveState
import dev.fieldmesh.core.drive.Goal
import dev.fieldmesh.core.drive.LinkState
import dev.fieldmesh.core.drive.Phase
import dev.fieldmesh.core.drive.Point
import dev.fieldmesh.core.drive.SignalSource
import dev.fieldmesh.core.drive.SpeedSource
import dev.fieldmesh.core.experiment.ControllerLink
import dev.fieldmesh.core.experiment.ExperimentState
import dev.fieldmesh.core.experiment.Steer
import dev.fieldmesh.core.experiment.Wish
import dev.fieldmesh.core.map.MapFault
import dev.fieldmesh.core.node.NodeState
import dev.fieldmesh.core.wire.Campaign
import dev.fieldmesh.core.wire.CampaignView
import dev.fieldmesh.core.wire.Check
import dev.fieldmesh.core.wire.Choice
import dev.fieldmesh.core.wire.Need
import dev.fieldmesh.core.wire.NodeStatus
import dev.fieldmesh.core.wire.Places
import dev.fieldmesh.core.wire.Planned
import dev.fieldmesh.core.wire.Preflight
import dev.fieldmesh.core.wire.Problem
import dev.fieldmesh.core.wire.Run
import dev.fieldmesh.core.wire.RunFile
import dev.fieldmesh.core.wire.Scale
import dev.fieldmesh.core.wire.Schedule
import dev.fieldmesh.core.wire.Sheet
import dev.fieldmesh.core.wire.SpeedMean
import dev.fieldmesh.core.wire.SpoolPosition
import dev.fieldmesh.core.wire.Spot
import dev.fieldmesh.core.wire.Stretch
import dev.fieldmesh.core.wire.TrialKey
import dev.fieldmesh.core.wire.TrialView
import dev.fieldmesh.core.wire.Verdict
import dev.fieldmesh.core.wire.WireError
import dev.fieldmesh.core.wire.WireJson
import dev.fieldmesh.device.MapState
import dev.fieldmesh.device.VoiceState
import dev.fieldmesh.device.WifiLink
import java.io.File
import java.io.IOException
import kotlin.math.sin

private fun golden(name: String) = File(System.getProperty("fieldmesh.golden"), "$name.json").readText()

private val sampleNode = WireJson.decodeFromString(NodeStatus.serializer(), golden("body_node_status"))
private val plan = WireJson.decodeFromString(Schedule.serializer(), golden("body_schedule"))

private val speeds = listOf("2.8", "8.3", "13.9", "16.7")

private fun trials(speedFactor: String) = plan.copy(
    trials = List(24) { i ->
        val factors = mapOf("section" to if (i % 2 == 0) "A" else "B", speedFactor to speeds[i % 4])
        plan.trials.first().copy(number = i + 1, factors = factors, speedMps = speeds[i % 4].toDouble(), pass = null)
    },
)

private val trials = trials("speed")

private fun verdict(trial: Int, attempt: Int, outcome: String, reason: String? = null, check: Check? = null) = Verdict(
    trial,
    attempt,
    outcome,
    reason,
    listOfNotNull(check),
    isFinal = true,
    throughputBps = if (outcome == "accepted") 1.42e7 else null,
)

private val outOfBand = Check("in_band_share_min", limit = 0.8, measured = 0.62, pass = false)

private val unaligned = Check("clock_error_ms_max", limit = 5.0, measured = 12.5, pass = false)

private fun oldFix(ms: Double?) = Check("fix_age_ms_max", "car", limit = 1500.0, measured = ms, pass = false)

private val newestView = CampaignView(
    3uL,
    "velocity-1",
    "velocity",
    "armed",
    TrialKey(5, 2),
    "faster: 9.2 of 13.9 m/s",
    listOf(
        TrialView(1, listOf(verdict(1, 1, "accepted"))),
        TrialView(
            2,
            listOf(
                verdict(2, 1, "rejected", "speed: in_band_share_min is 0.62, limit 0.8", outOfBand),
                verdict(2, 2, "accepted"),
            ),
        ),
        TrialView(3, listOf(verdict(3, 1, "accepted"))),
        TrialView(4, List(3) { verdict(4, it + 1, "failed", "gate_timeout: faster: 9.2 of 13.9 m/s") }),
        TrialView(
            5,
            listOf(verdict(5, 1, "rejected", "gps: fix_age_ms_max on car is 2300, limit 1500", oldFix(2300.0))),
        ),
    ),
    SpoolPosition("e", 1),
)

private val stopped = newestView.copy(
    state = "loaded",
    current = null,
    trials = listOf(
        TrialView(1, listOf(verdict(1, 1, "rejected", "gps: fix_age_ms_max on car not measured", oldFix(null)))),
        TrialView(2, listOf(verdict(2, 1, "interrupted", "agent_restarted: on car: killed"))),
        TrialView(3, listOf(verdict(3, 1, "rejected", "clock: clock_error_ms_max is 12.5, limit 5", unaligned))),
    ),
)

private val allDone = newestView.copy(
    state = "loaded",
    current = null,
    trials = trials.trials.map { TrialView(it.number, listOf(verdict(it.number, 1, "accepted"))) },
)

/** As a node that drives without its controller has judged. */
private val provisional = Verdict(5, 2, "accepted", isFinal = false)

private val sampleCampaign = CampaignState.of(trials, newestView)

private val way = TrackState(
    points = List(200) { i ->
        TrackPoint(
            -26.682 + 0.00002 * sin(i / 15.0) * i / 10,
            27.092 + i * 0.00002,
            if (i in
                20..180
            ) {
                1.8e7 * (1 - i / 200.0)
            } else {
                null
            },
        )
    },
    marks = listOf(
        Mark("a", "Bus passed", -26.68195, 27.0932, true),
        Mark("b", "Person near", -26.6821, 27.0945, false),
    ),
    peers = listOf(Peer("roadside", -26.68202, 27.0922, 4), Peer("relay", -26.6813, 27.0948, 95)),
    siteLatDeg = -26.682,
    siteLonDeg = 27.092,
)

private fun town(eastM: Double, northM: Double) = 52.5 + northM / 111194.9 to 13.4 + eastM / 67691.4

/** Through the town that the map shows: up its long road, and round a block. */
private val street = TrackState(
    points = List(300) { i ->
        val (lat, lon) = if (i < 200) town(3 * sin(i / 9.0), i * 5.0 - 300) else town((i - 200) * 1.9, 702.0)
        TrackPoint(lat, lon, (1.8e7 * (1 - i / 290.0)).takeIf { i in 20..280 }, afterGap = i in 120..130)
    },
    marks = listOf(town(4.0, 120.0).let { (lat, lon) -> Mark("a", "Bus passed", lat, lon, true) }),
    peers = listOf(town(-20.0, -310.0).let { (lat, lon) -> Peer("roadside", lat, lon, 4) }),
    siteLatDeg = town(-20.0, -300.0).first,
    siteLonDeg = town(-20.0, -300.0).second,
)

private val townMap = MapState.Open(Maps.opened(Maps.written("town")))

/** Its tiles are no vector tiles. */
private fun brokenTown(): ByteArray {
    val tile = Maps.packed(byteArrayOf(1, 2, 3))
    return Maps.made(Maps.entry(1L shl 40, tile.size.toLong()), tiles = tile)
}

private val chart = List(120) { Point(it * 250_000_000L, (12 + 8 * sin(it / 12.0)) * 1e6) }
private val levels = List(120) { Point(it * 250_000_000L, -60 - 15 * sin(it / 20.0)) }

private val armed = DriveState(
    link = LinkState.UP, phase = Phase.ARMED,
    key = TrialKey(
        5,
        2,
    ),
    trialsTotal = 24, band = Band(13.9, 0.5), speedMps = 9.2, speedSource = SpeedSource.NODE,
    hasFix = true, trackDeg = 84.0, wantedTrackDeg = 87.5, toGateM = 143.0, holdS = 1.0, durationS = 10.0,
    detail = "faster: 9.2 of 13.9 m/s",
).zoned()

private fun DriveState.zoned() = copy(zone = band?.zone(speedMps) ?: zone)

private val velocityStudy = Campaign(
    "velocity",
    "Impact of node velocity on TCP throughput over 802.11g ad hoc",
    "Does TCP throughput between a moving and a standing node fall with the speed of the moving one, and does it " +
        "matter which of the two sends?",
    listOf(Scale("smoke", "One trial of each section at one speed: whether all of it works, and nothing of the road.")),
    listOf(2.8, 5.6, 8.3, 11.1, 13.9, 16.7),
    2,
    listOf("alpha", "bravo"),
)

private val offered = listOf(
    velocityStudy,
    Campaign(
        "six-variants",
        "Six TCP variants over a chain",
        "",
        emptyList(),
        nodes = listOf("a", "b", "c"),
        missing = listOf("b", "c"),
    ),
    Campaign(
        "variants-random",
        "TCP variants in a random field",
        "",
        emptyList(),
        nodes = emptyList(),
        refused = "the radio of variants-random is emulated; rehearse it: fieldmesh rehearse variants-random.yaml",
    ),
)

private val serves = Pairing("192.168.50.2", 7448, Pin("cd".repeat(32)))

private val known =
    ExperimentState(serves, ControllerLink.UP, campaigns = offered, runs = emptyList())

private const val WAY_BACK = "too late: drive back to the start, 430 m from here"
private const val HOLDS_OFF = "waiting for a controller: the run has ended at node bravo"
private const val DUE = "bravo is out of reach: it goes on by itself. Go near, and put the nodes back."

private fun runOf(phase: String) = Run(
    "velocity-1129-141233",
    "velocity",
    "road",
    phase,
    24,
    11,
    1,
    leftS = if (phase == "running") 3720.0 else null,
    sheet = Sheet(listOf(SpeedMean(2.8, 1.62e7, 3), SpeedMean(5.6, 1.55e7, 1), SpeedMean(16.7, 9.1e6, 4))),
)

private val chosen = known.copy(
    choice = Choice("velocity", speedsMps = listOf(2.8, 16.7), repetitions = 1),
    own = Planned(24, 2460.0, 569.0, velocityStudy.speedsMps, 2),
    planned = Planned(
        4,
        410.0,
        569.0,
        listOf(2.8, 16.7),
        1,
        listOf(
            "Chosen by the experimenter: the speeds are 2.8, 16.7 m/s instead of 2.8, 5.6, 8.3, 11.1, 13.9, 16.7 " +
                "m/s; the repetitions are 1 instead of 2.",
        ),
    ),
)

private val checked = chosen.copy(
    preflight = Preflight(
        ready = false,
        listOf(
            Need("alpha", "gps", "met", "3-D fix, 1 Hz"),
            Need("alpha", "radio", "met", "wlan0 can be ad hoc"),
            Need(null, "time", "met", "7 min of 24 h"),
            Need("bravo", "clock", "unknown", "the node did not answer in time", "ask again"),
            Need("bravo", "radio", "unmet", "there is no interface wlan0", "plug the radio in, or correct `interface`"),
        ),
    ),
)

private val files = listOf(
    RunFile("report.html", 1_234_567),
    RunFile("results.csv", 34_567),
    RunFile("tracks.gpx", 456_789),
)

private val rangeTest =
    Campaign("range-test", "Range test", "How far?", emptyList(), nodes = listOf("alpha", "bravo"), rangeTest = true)

/** Away to the north-east at 5.6 m/s, and then faster. */
private val logged = Places(
    187.4,
    listOf(
        Stretch(0.0, 20.0, 14, 5.6, -48.2, 1.84e7, 0.0),
        Stretch(20.0, 40.0, 9, 8.3, -61.0, 1.71e7, 0.0),
        Stretch(40.0, 60.0, 4, 8.4, -66.9, 1.22e7, 1.3),
        Stretch(60.0, 80.0, 4, 8.3, -72.1, 6.1e6, 7.5),
        Stretch(120.0, 140.0, 3, 11.1, -80.4, 410_000.0, 38.0),
        Stretch(180.0, 200.0, 2, 11.1, null, 0.0, 100.0),
        Stretch(220.0, 240.0, 1),
    ),
    (0..60).map { Spot(50.0 + it * 2e-5, 8.0 + it * 3e-5, (1.84e7 - it * 4e5).takeIf { bps -> bps > 0 }) },
    50.0,
    8.0,
)

private val nothingCame = listOf(Stretch(0.0, 20.0, 14, 0.0, -91.5, 0.0, 100.0))

private val ranged = known.copy(
    runs = listOf(runOf("ended").copy(name = "range-test-1129-1", campaign = "range-test", sheet = null)),
    opened = "range-test-1129-1",
    files = listOf(RunFile("places.csv", 4_567), RunFile("places.gpx", 12_345)),
    places = logged,
)

private val experiments: Map<String, ExperimentState> = mapOf(
    "other" to ExperimentState(),
    "asking" to ExperimentState(serves),
    "none" to known.copy(campaigns = emptyList()),
    "list" to known.copy(
        runs = listOf(
            runOf("running"),
            runOf("ended").copy(name = "velocity-1129-090000", said = DUE),
            runOf("complete").copy(name = "velocity-1128-101500"),
        ),
    ),
    "ranges" to known.copy(campaigns = offered + rangeTest),
    "ranges-busy" to known.copy(campaigns = offered + rangeTest, runs = listOf(runOf("running"))),
    "places" to ranged,
    "nowhere" to ranged.copy(places = logged.copy(farthestM = null, stretches = emptyList())),
    "lost" to known.copy(link = ControllerLink.LOST),
    "revoked" to known.copy(link = ControllerLink.NOT_EXPERIMENTER),
    "planning" to known.copy(choice = Choice("velocity")),
    "chosen" to chosen,
    "missing" to known.copy(choice = Choice("six-variants"), planned = Planned(72, 9000.0, null, emptyList(), 3)),
    "wrong" to known.copy(link = ControllerLink.WRONG_CONTROLLER),
    "undrivable" to known.copy(choice = Choice("variants-random")),
    "unread" to known.copy(refused = AgentException.BadAnswer(IOException("an unknown field"))),
    "unstored" to known.copy(refused = AgentException.Unstored(IOException("Permission denied"))),
    "no-key" to known.copy(refused = AgentException.NoKey(IOException("the key store does not answer"))),
    "too-old" to known.copy(refused = AgentException.TooOld("velocity-1129-141233", isStart = true)),
    "too-old-resume" to known.copy(
        runs = listOf(runOf("paused")),
        opened = "velocity-1129-141233",
        refused = AgentException.TooOld("velocity-1129-141233", isStart = false),
    ),
    "refused" to known.copy(
        choice = Choice("velocity", speedsMps = listOf(90.0)),
        refused = AgentException.Refused(
            WireError(
                "bad_request",
                "speeds_mps: 90 m/s is not one of 2.8, 5.6 m/s, and the levels of factor mix set more than the " +
                    "speed; choose of these",
            ),
        ),
    ),
    "checking" to chosen.copy(isChecking = true),
    "unready" to checked,
    "ready" to checked.copy(preflight = Preflight(true, checked.needs.filter { it.outcome == "met" })),
    "outdated" to checked.copy(
        preflight = Preflight(true, checked.needs.filter { it.outcome == "met" }),
        isCheckOld = true,
    ),
    "busy" to chosen.copy(runs = listOf(runOf("running"))),
    "starting" to chosen.copy(
        preflight = Preflight(true, emptyList()),
        wishes = listOf(Wish(Steer.START, "velocity-1129-141233", Choice("velocity"))),
    ),
    "running" to known.copy(runs = listOf(runOf("running")), opened = "velocity-1129-141233", files = files),
    "pausing" to known.copy(
        runs = listOf(runOf("running")),
        opened = "velocity-1129-141233",
        wishes = listOf(Wish(Steer.PAUSE, "velocity-1129-141233")),
    ),
    "resuming" to known.copy(
        runs = listOf(runOf("paused")),
        opened = "velocity-1129-141233",
        wishes = listOf(Wish(Steer.RESUME, "velocity-1129-141233")),
    ),
    "ending" to known.copy(
        runs = listOf(runOf("running")),
        opened = "velocity-1129-141233",
        wishes = listOf(Wish(Steer.END, "velocity-1129-141233")),
    ),
    "nearly" to known.copy(
        runs = listOf(runOf("running").copy(accepted = 23, givenUp = 0, leftS = 20.0, place = "bench")),
        opened = "velocity-1129-141233",
    ),
    "rehearsal" to known.copy(
        runs = listOf(runOf("running").copy(place = "rehearsal")),
        opened = "velocity-1129-141233",
    ),
    "gone" to known.copy(opened = "velocity-1129-141233"),
    "nothing" to ranged.copy(places = logged.copy(farthestM = null, stretches = nothingCame)),
    "paused" to known.copy(runs = listOf(runOf("paused")), opened = "velocity-1129-141233", files = files),
    "failed" to known.copy(
        runs = listOf(runOf("failed").copy(said = "alpha: connection refused\nstart its agent: fieldmesh-agent up")),
        opened = "velocity-1129-141233",
    ),
    "ended" to known.copy(runs = listOf(runOf("ended").copy(said = DUE)), opened = "velocity-1129-141233"),
    "slow" to known.copy(
        runs = listOf(runOf("paused").copy(sheet = Sheet(listOf(SpeedMean(2.8, 41_500.0, 1))))),
        opened = "velocity-1129-141233",
    ),
    "full" to known.copy(
        runs = listOf(runOf("paused")),
        opened = "velocity-1129-141233",
        refused = AgentException.Unstored(IOException("write failed: ENOSPC (No space left on device)")),
    ),
    "complete" to known.copy(
        runs = listOf(runOf("complete")),
        opened = "velocity-1129-141233",
        files = files,
        fetching = "report.html",
    ),
)

/** This phone as a node. */
data class OwnNode(
    val isBuilt: Boolean = true,
    val isWanted: Boolean = false,
    val isPaired: Boolean = false,
    val mayFollow: Boolean = false,
    val hasSaid: Boolean = false,
    val state: NodeState = NodeState.Off,
    val link: WifiLink? = WifiLink("wlan0", "192.168.43.5/24"),
    val isLocal: Boolean = false,
)

/** All that a screen is drawn from. */
data class Scene(
    val state: AppState,
    val experiment: ExperimentState = ExperimentState(serves),
    val voice: VoiceState = VoiceState.READY,
    val own: OwnNode = OwnNode(),
    val gpsRuns: Boolean = false,
    val logFault: String? = null,
    val logBytes: Long = 0,
    val map: MapState = MapState.None,
    /** What was typed on the Pair screen and taken. */
    val typed: String? = null,
    /** How many nodes a code let the app in to. */
    val nodes: Int = 0,
    val recordedS: Int? = null,
    val waiting: AttachmentsWaiting = AttachmentsWaiting(),
)

/** Every state that a screen may be in, by the name of its picture. */
object States {
    val schedule: Schedule = trials
    val view: CampaignView = newestView
    private val sound = sampleNode.copy(problems = emptyList(), host = sampleNode.host.copy(failed = emptyList()))
    val ready = AppState(sound, armed, sampleCampaign, way, trials.trials[4], trials.trials[5], nodeNs = 0)

    private fun drive(change: DriveState.() -> DriveState) = ready.copy(drive = armed.change().zoned())

    private fun over(speedMps: Double, outcome: String, reason: String, check: Check? = null) = drive {
        copy(
            phase = Phase.DONE,
            band = null,
            speedMps = speedMps,
            detail = null,
            verdict = verdict(5, 2, outcome, reason, check),
        )
    }

    private val drive: Map<String, AppState> = mapOf(
        "unpaired" to AppState(),
        "connecting" to AppState(drive = DriveState(link = LinkState.CONNECTING)),
        "lost" to AppState(drive = DriveState(link = LinkState.LOST)),
        "wrong-node" to AppState(drive = DriveState(link = LinkState.WRONG_NODE)),
        "not-paired" to AppState(drive = DriveState(link = LinkState.NOT_PAIRED)),
        "bad-answer" to AppState(drive = DriveState(link = LinkState.BAD_ANSWER)),
        "no-run" to AppState(sound, DriveState(link = LinkState.UP)),
        "idle" to drive { copy(phase = Phase.IDLE, key = null, band = null, speedMps = 0.2, detail = null) },
        "armed-standing" to drive {
            copy(band = null, zone = Zone.UNKNOWN, speedMps = 0.0, toGateM = null, detail = "open")
        },
        "to-start" to drive {
            copy(band = null, speedMps = 8.1, toGateM = null, goTo = Goal.START, detail = WAY_BACK)
        },
        "to-mark" to drive { copy(phase = Phase.IDLE, band = null, toGateM = null, goTo = Goal.MARK, detail = null) },
        "armed-by-phone" to drive { copy(speedSource = SpeedSource.PHONE, detail = "waiting for the mark at 20 m") },
        "no-fix" to drive {
            copy(
                speedMps = null,
                speedSource = null,
                hasFix = false,
                trackDeg = null,
                toGateM = null,
                detail = "waiting for a GPS fix",
            )
        },
        "node-slow" to drive {
            copy(
                speedMps = null,
                speedSource = null,
                nodeIsSlow = true,
                hasFix = false,
                trackDeg = null,
                toGateM = null,
            )
        },
        "armed-too-slow" to ready,
        "armed-in-band" to drive {
            copy(speedMps = 13.8, inBandS = 0.6, toGateM = 12.0, detail = "hold: 13.8 of 13.9 m/s")
        },
        "armed-too-fast" to drive {
            copy(speedMps = 15.6, toGateM = 60.0, detail = "slower: 15.6 of 13.9 m/s")
        },
        "armed-turned" to ready.copy(
            drive = armed.copy(
                zone = Zone.TURNED,
                speedMps = 13.8,
                trackDeg = 268.0,
                detail = "turn round: the trial is driven the other way",
            ),
        ),
        "running" to drive {
            copy(
                phase = Phase.RUNNING,
                speedMps = 14.0,
                inBandS = 7.3,
                remainingS = 3.7,
                detail = null,
                throughput = chart,
                signal = levels,
                signalSource = SignalSource.NODES,
                toGateM = -93.0,
            )
        },
        "running-phone" to drive {
            copy(
                phase = Phase.RUNNING,
                speedMps = 14.0,
                inBandS = 7.3,
                remainingS = 3.7,
                detail = null,
                throughput = chart,
                signal = levels.filterIndexed { i, _ -> i % 12 == 0 }, // Android renews it about every 3 s
                signalSource = SignalSource.ACCESS_POINT,
                toGateM = -93.0,
            )
        },
        "running-lost" to
            drive {
                copy(
                    link = LinkState.LOST,
                    phase = Phase.RUNNING,
                    staleSinceNs = 1,
                    speedMps = 14.0,
                    remainingS = 2.0,
                    detail = null,
                    throughput = chart,
                )
            },
        "running-third" to drive {
            copy(phase = Phase.RUNNING, signal = levels, signalSource = SignalSource.NODES, signalPeers = 2)
        },
        "restoring" to drive { copy(phase = Phase.RESTORING, band = null, detail = null) },
        "done" to
            drive {
                copy(
                    phase = Phase.DONE,
                    band = null,
                    speedMps = 3.2,
                    detail = null,
                    verdict = verdict(5, 2, "accepted"),
                    throughput = chart,
                    signal = levels,
                    signalSource = SignalSource.NODES,
                )
            },
        "done-lost" to drive {
            copy(
                link = LinkState.LOST,
                phase = Phase.DONE,
                staleSinceNs = 1,
                band = null,
                speedMps = 3.2,
                detail = null,
                verdict = verdict(5, 2, "accepted"),
            )
        },
        "done-alone" to drive { copy(phase = Phase.DONE, band = null, detail = null, verdict = provisional) },
        "stopped" to drive {
            copy(phase = Phase.DONE, band = null, isStopped = true, detail = null, verdict = provisional)
        },
        "held-off" to drive { copy(phase = Phase.DONE, band = null, detail = HOLDS_OFF, verdict = provisional) },
        "rejected" to over(3.2, "rejected", "speed: in_band_share_min is 0.62, limit 0.8", outOfBand),
        "failed" to over(0.0, "failed", "routing_daemon: it ended during the attempt"),
        "interrupted" to over(0.0, "interrupted", "agent_restarted: during the attempt"),
    )

    private fun without(link: LinkState) = AppState(drive = DriveState(link = link))

    private val runs = OwnNode(
        isWanted = true,
        isPaired = true,
        hasSaid = true,
        state = NodeState.Running(-180_000_000_000),
        isLocal = true,
    )

    private val node: Map<String, Scene> = mapOf(
        "no-agent" to Scene(drive.getValue("lost"), logBytes = 1_234_567L),
        "ready" to Scene(ready, gpsRuns = true),
        "changed" to Scene(ready.copy(node = sampleNode.copy(problems = emptyList()))),
        "old" to Scene(
            ready.copy(
                drive = armed.copy(link = LinkState.LOST, staleSinceNs = 1),
                node = sound.copy(clock = sound.clock.copy(wallNs = sound.clock.wallNs - 40_000_000_000)),
                nodeNs = -40_000_000_000,
                nodeOldS = 40,
            ),
        ),
        "beside" to Scene(ready.copy(node = ready.node?.copy(interfaceName = "mesh0", interfaceUp = null))),
        "rough" to Scene(ready.copy(node = sound.copy(gps = sound.gps?.copy(speedErrMps = null)))),
        "gps-refused" to Scene(
            ready.copy(
                gpsRefusal = WireError(
                    "conflict",
                    "this node is where van says, and follows nobody else: driver may be elsewhere",
                    "have only the phone that travels with this node give it its GPS",
                ),
            ),
            gpsRuns = true,
        ),
        "problems" to Scene(
            ready.copy(
                node = sampleNode.copy(
                    interfaceUp = null,
                    radio = null,
                    gps = sampleNode.gps?.copy(mode = 1, fixAgeMs = null),
                    problems = listOf(
                        Problem(
                            "radio",
                            "there is no interface wlan0",
                            "correct `interface` in the agent's configuration, or plug the radio in",
                        ),
                        Problem("gps", "no fix (mode 1)", "give the receiver a view of the sky and wait"),
                    ),
                ),
            ),
        ),
        "log-full" to Scene(ready, logFault = "No space left on device", logBytes = 1_234_567L),
        "own-absent" to Scene(without(LinkState.UNPAIRED), own = OwnNode(isBuilt = false)),
        "own-off" to Scene(without(LinkState.UNPAIRED), own = OwnNode(isWanted = true)),
        "own-starting" to Scene(
            without(LinkState.UNPAIRED),
            own = OwnNode(isWanted = true, state = NodeState.Starting, link = null),
        ),
        "own-unpaired" to Scene(
            without(LinkState.UNPAIRED),
            own = OwnNode(isWanted = true, hasSaid = true, state = NodeState.Unpaired),
        ),
        "own-running" to Scene(ready, own = runs.copy(isLocal = false)),
        "own-local" to Scene(without(LinkState.UNPAIRED), own = runs.copy(mayFollow = true)),
        "own-failing" to Scene(
            without(LinkState.LOST),
            own = runs.copy(state = NodeState.Failing("the host part ended: exit status 1")),
        ),
        "own-exited" to Scene(
            without(LinkState.LOST),
            own = runs.copy(state = NodeState.Failing("listen on 0.0.0.0:7443: address already in use", 1)),
        ),
        "own-killed" to Scene(without(LinkState.LOST), own = runs.copy(state = NodeState.Failing("", 128 + 31))),
    )

    private val campaign: Map<String, Scene> = mapOf(
        "none" to Scene(drive.getValue("lost")),
        "waiting" to Scene(drive.getValue("no-run")),
        "some" to Scene(ready),
        "stopped" to Scene(ready.copy(campaign = CampaignState.of(trials("speed_mps"), stopped))),
        "ended" to Scene(ready.copy(campaign = CampaignState.of(trials, stopped.copy(ended = true)))),
        "done" to Scene(ready.copy(campaign = CampaignState.of(trials, allDone))),
        "alone" to stopped.copy(trials = listOf(TrialView(1, listOf(provisional)))).let {
            Scene(ready.copy(campaign = CampaignState.of(trials, it)))
        },
    )

    private val track: Map<String, Scene> = mapOf(
        "none" to Scene(drive.getValue("lost")),
        "way" to Scene(ready),
        "recording" to Scene(ready, recordedS = 47, waiting = AttachmentsWaiting(2)),
        "full" to Scene(ready, waiting = AttachmentsWaiting(1, nodeIsFull = true)),
        "old" to Scene(ready, waiting = AttachmentsWaiting(2, nodeIsOld = true)),
        "refused" to Scene(ready, waiting = AttachmentsWaiting(3, refused = 1)),
        "car-unknown" to Scene(ready.copy(track = way.copy(isOld = true))),
        "unmeasured" to Scene(ready.copy(track = way.copy(points = way.points.map { it.copy(throughputBps = null) }))),
        "map" to Scene(ready.copy(track = street), map = townMap),
        "map-alone" to Scene(drive.getValue("lost"), map = townMap),
        "map-elsewhere" to Scene(ready, map = townMap),
        "map-opening" to Scene(ready, map = MapState.Opening),
        "map-damaged-tile" to Scene(ready.copy(track = street), map = MapState.Open(Maps.opened(brokenTown()))),
    ) + MapFault.entries.associate {
        "map-${it.name.lowercase().replace('_', '-')}" to Scene(ready.copy(track = street), map = MapState.Failed(it))
    }

    private val settings: Map<String, Scene> = VoiceState.entries.associate {
        it.name.lowercase().replace('_', '-') to Scene(ready, voice = it)
    }

    private val scan: Map<String, Scene> = mapOf("failed" to Scene(AppState()), "picture" to Scene(ready))

    private val pair: Map<String, Scene> = mapOf(
        "unpaired" to Scene(AppState(), ExperimentState()),
        "paired" to Scene(ready),
        "choosing" to Scene(AppState(), ExperimentState(), nodes = 2),
        "mistyped" to Scene(AppState(), ExperimentState(), typed = "FIELDMESH-PAIR/192.168.50.2:7448/ABCD-EFGH"),
        "bad" to Scene(AppState(), ExperimentState(), typed = "fieldmesh"),
    )

    /** By the screen. Each of these is drawn in each manner; a screen that is missing here fails a test. */
    internal val all: Map<Tab, Map<String, Scene>> = mapOf(
        Tab.EXPERIMENT to experiments.mapValues { Scene(ready, it.value) },
        Tab.DRIVE to drive.mapValues { Scene(it.value) } + mapOf(
            "no-voice" to Scene(ready, voice = VoiceState.NO_ENGINE),
            "no-language" to Scene(drive.getValue("rejected"), voice = VoiceState.NO_LANGUAGE),
        ),
        Tab.CAMPAIGN to campaign,
        Tab.TRACK to track,
        Tab.NODE to node,
        Tab.PAIR to pair,
        Tab.SCAN to scan,
        Tab.SETTINGS to settings,
    )
}
