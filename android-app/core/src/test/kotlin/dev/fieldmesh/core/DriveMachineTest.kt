package dev.fieldmesh.core

import dev.fieldmesh.core.cue.Cue
import dev.fieldmesh.core.cue.Zone
import dev.fieldmesh.core.drive.DriveMachine
import dev.fieldmesh.core.drive.Goal
import dev.fieldmesh.core.drive.LinkState
import dev.fieldmesh.core.drive.Phase
import dev.fieldmesh.core.drive.SignalSource
import dev.fieldmesh.core.drive.SpeedSource
import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.wire.Live
import dev.fieldmesh.core.wire.TrialKey
import kotlin.random.Random
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

class DriveMachineTest {
    private val second = 1_000_000_000L
    private val machine = DriveMachine().apply {
        onLink(LinkState.UP, 0)
        onSchedule(schedule())
    }

    private fun fix(ns: Long, speed: Double, lonDeg: Double = 0.0) =
        Fix(ns, mode = 3, latDeg = 0.0, lonDeg = lonDeg, speedMps = speed, trackDeg = 90.0)

    @Test
    fun `the access point's signal and the nodes' are not one line`() {
        machine.onSignal(-50.0, SignalSource.ACCESS_POINT, 0)
        machine.onSignal(-51.0, SignalSource.ACCESS_POINT, second)
        machine.state(second).let {
            assertEquals(listOf(-50.0, -51.0), it.signal.map { point -> point.value })
            assertEquals(SignalSource.ACCESS_POINT, it.signalSource)
        }
        machine.onSignal(-70.0, SignalSource.NODES, 2 * second)
        machine.state(2 * second).let {
            assertEquals(listOf(-70.0), it.signal.map { point -> point.value })
            assertEquals(SignalSource.NODES, it.signalSource)
        }
    }

    @Test
    fun `a trial from armed to done`() {
        machine.onView(view("loaded", key = null), 0)
        assertEquals(Phase.IDLE, machine.state(0).phase)
        machine.onView(view("armed"), second)
        machine.onFix(fix(second, 10.0))
        machine.state(second).let {
            assertEquals(Phase.ARMED, it.phase)
            assertEquals(Zone.BELOW, it.zone)
            assertEquals(20.0, it.toGateM!!, 0.01)
            assertEquals(90.0, it.wantedTrackDeg)
        }
        for (i in 2L..6L) machine.onFix(fix(i * second, 13.9))
        assertTrue(machine.state(6 * second).inBandS!! >= 3.0)
        machine.onView(view("running", live = Live(remainingS = 10.0, throughputBps = 2e7)), 7 * second)
        machine.state(9 * second).let {
            assertEquals(Phase.RUNNING, it.phase)
            assertEquals(8.0, it.remainingS!!, 1e-9)
            assertEquals(1, it.throughput.size)
            assertNull(it.speedMps, "a speed of three seconds ago is not shown")
        }
        machine.onView(view("kept", verdicts = listOf(verdict("accepted"))), 18 * second)
        machine.state(18 * second).let {
            assertEquals(Phase.DONE, it.phase)
            assertEquals("accepted", it.verdict?.outcome)
            assertNull(it.remainingS)
            assertNull(it.band)
        }
        assertEquals(listOf(Cue.TARGET, Cue.NO_GPS, Cue.GO, Cue.DONE).sorted(), machine.takeEvents().sorted())
    }

    @Test
    fun `on the way back to the start nobody is told to keep a speed`() {
        machine.onView(view("armed").copy(toStart = true), 0)
        machine.onFix(fix(0, 13.9))
        machine.state(0).let {
            assertNull(it.band)
            assertNull(it.inBandS)
            assertEquals(Zone.UNKNOWN, it.zone)
        }
        machine.onView(view("armed"), second)
        machine.onFix(fix(second, 10.0))
        assertEquals(Zone.BELOW, machine.state(second).zone)
        assertEquals(listOf(Cue.TARGET), machine.takeEvents(), "told again when the car is at its start")
    }

    @Test
    fun `a car that has to go back to its start is told once, and hears its target there`() {
        machine.onView(view("armed"), 0)
        for (s in 1L..2L) machine.onView(view("armed").copy(toStart = true), s * second)
        assertEquals(Goal.START, machine.state(2 * second).goTo)
        assertEquals(listOf(Cue.TO_START), machine.takeEvents())
        machine.onView(view("armed"), 3 * second)
        assertNull(machine.state(3 * second).goTo)
        assertEquals(listOf(Cue.TARGET), machine.takeEvents())
    }

    @Test
    fun `a trial that begins far from its start sends the car there, while it is being armed too`() {
        val done = listOf(verdict("accepted"))
        val next = TrialKey(2, 1)
        machine.onView(view("kept", verdicts = done), 0)
        for ((i, state) in listOf("loaded", "armed").withIndex()) {
            machine.onView(view(state, next, done).copy(toStart = true), i * second)
            assertEquals(Goal.START, machine.state(i * second).goTo, state)
        }
        assertEquals(listOf(Cue.TO_START), machine.takeEvents())
        machine.onView(view("armed", next, done), 2 * second)
        assertEquals(listOf(Cue.TARGET), machine.takeEvents())
    }

    @Test
    fun `a car that is parked is sent to its mark`() {
        val parked = trial(1).let { it.copy(course = it.course.copy(kind = "parked")) }
        machine.onSchedule(schedule(trials = listOf(parked)))
        machine.onView(view("armed").copy(toStart = true), 0)
        assertEquals(Goal.MARK, machine.state(0).goTo)
    }

    @Test
    fun `a run that is stopped in a trial is told, and no node is missed, until it is taken up`() {
        val over = listOf(verdict("interrupted", reason = "aborted: the node was told to restore"))
        machine.onView(view("running"), 0)
        machine.onView(view("running").copy(ended = true), second)
        machine.onView(view("kept", verdicts = over).copy(ended = true), 2 * second)
        assertEquals(listOf(Cue.STOPPED, Cue.INTERRUPTED), machine.takeEvents())
        machine.state(2 * second).let { assertEquals(true to TrialKey(1, 1), it.isStopped to it.over) }
        machine.onLink(LinkState.LOST, 3 * second)
        assertEquals(emptyList(), machine.takeEvents())
        machine.onLink(LinkState.UP, 4 * second)
        machine.onView(view("kept", verdicts = over), 4 * second)
        assertEquals(false, machine.state(4 * second).isStopped)
        machine.onLink(LinkState.LOST, 5 * second)
        assertEquals(listOf(Cue.NODE_LOST), machine.takeEvents())
    }

    @Test
    fun `a run that ends after its last trial is not stopped`() {
        val done = listOf(verdict("accepted"), verdict("accepted", trial = 2))
        machine.onView(view("kept", TrialKey(2, 1), done), 0)
        machine.onView(view("kept", TrialKey(2, 1), done).copy(ended = true), second)
        assertEquals(false, machine.state(second).isStopped)
        assertEquals(emptyList(), machine.takeEvents())
    }

    @Test
    fun `why a node begins nothing more is told after an attempt too`() {
        val why = "waiting for a controller: the run has ended at node bravo"
        machine.onView(view("kept", verdicts = listOf(verdict("accepted"))).copy(detail = why), 0)
        machine.state(0).let { assertEquals(Phase.DONE to why, it.phase to it.detail) }
    }

    /** A trial whose gate waits for the car at its start and at a place, as the course `segment` has it. */
    private fun segment(direction: String) =
        trial(1, direction = direction).let { it.copy(gate = it.gate.copy(atStart = true)) }

    @Test
    fun `a car that drives the other way is not told to hold its speed, as the gate waits for it to turn`() {
        machine.onSchedule(schedule(trials = listOf(segment("inbound"))))
        machine.onView(view("armed"), 0)
        for (i in 0L..3L) machine.onFix(fix(i * second, 13.9))
        machine.state(3 * second).let {
            assertEquals(Zone.TURNED, it.zone)
            assertNull(it.inBandS, "the gate's own count is 0")
        }
        machine.onFix(fix(4 * second, 13.9).copy(trackDeg = 271.0))
        assertEquals(Zone.WITHIN to 0.0, machine.state(4 * second).run { zone to inBandS })
        machine.onFix(fix(5 * second, 13.9).copy(trackDeg = null))
        assertEquals(Zone.WITHIN, machine.state(5 * second).zone, "without a track the gate looks at the speed alone")
        machine.onView(view("running"), 5 * second)
        machine.onFix(fix(6 * second, 13.9))
        assertEquals(Zone.WITHIN, machine.state(6 * second).zone, "the gate is past")
    }

    @Test
    fun `a departure to either side, and a gate that does not wait for the start, have no direction`() {
        val asked = segment("inbound")
        val others = listOf(
            asked.copy(gate = asked.gate.copy(atStart = false)),
            asked.copy(gate = asked.gate.copy(placeM = null)),
            segment("outbound"),
        )
        for (other in others) {
            machine.onSchedule(schedule(trials = listOf(other)))
            machine.onView(view("armed"), 0)
            machine.onFix(fix(0, 13.9))
            assertEquals(Zone.WITHIN, machine.state(0).zone, "$other")
        }
    }

    @Test
    fun `a pass has a direction without a place, too`() {
        val pass = segment("inbound").let {
            it.copy(gate = it.gate.copy(placeM = null), course = it.course.copy(kind = "pass"))
        }
        machine.onSchedule(schedule(trials = listOf(pass)))
        machine.onView(view("armed"), 0)
        machine.onFix(fix(0, 13.9))
        assertEquals(Zone.TURNED, machine.state(0).zone)
    }

    @Test
    fun `a car that stands has not turned, whatever track its receiver tells`() {
        machine.onSchedule(schedule(trials = listOf(segment("inbound"))))
        machine.onView(view("armed"), 0)
        machine.onFix(fix(0, 0.4))
        assertEquals(Zone.BELOW, machine.state(0).zone)
    }

    @Test
    fun `the track is the node's own receiver's where the speed is`() {
        machine.onSchedule(schedule(trials = listOf(segment("inbound"))))
        machine.onView(view("armed", live = Live(speedMps = 13.9, trackDeg = 90.0)), 0)
        assertEquals(Zone.TURNED to 90.0, machine.state(0).run { zone to trackDeg })
        machine.onFix(fix(0, 13.9).copy(trackDeg = 270.0))
        assertEquals(Zone.TURNED to 90.0, machine.state(0).run { zone to trackDeg })
        machine.onView(view("armed", live = Live(speedMps = 13.9)), 1)
        assertEquals(Zone.WITHIN to 270.0, machine.state(1).run { zone to trackDeg }, "an agent of before tells none")
    }

    @Test
    fun `a node that is lost between two trials is told, as the next begins without it`() {
        machine.onView(view("restoring"), 0)
        machine.onLink(LinkState.LOST, second)
        assertEquals(listOf(Cue.NODE_LOST), machine.takeEvents())
        machine.onLink(LinkState.UP, 2 * second)
        machine.onView(view("kept", verdicts = listOf(verdict("accepted"))), 2 * second)
        machine.takeEvents()
        machine.onLink(LinkState.LOST, 3 * second)
        assertEquals(listOf(Cue.NODE_LOST), machine.takeEvents())
        assertEquals(3 * second, machine.state(4 * second).staleSinceNs)
    }

    @Test
    fun `no cue tells of a lost node when no trial is left, or when a person has unpaired it`() {
        machine.onView(view("kept", verdicts = listOf(verdict("accepted"))), 0)
        machine.onLink(LinkState.UNPAIRED, second)
        assertEquals(emptyList(), machine.takeEvents(), "trial 2 is open, and the app was unpaired")
        machine.onLink(LinkState.UP, second)
        machine.onSchedule(schedule())
        val done = listOf(verdict("accepted"), verdict("accepted", trial = 2))
        machine.onView(view("kept", TrialKey(2, 1), done), second)
        machine.onLink(LinkState.LOST, 2 * second)
        assertEquals(emptyList(), machine.takeEvents())
    }

    @Test
    fun `an outcome that the controller changes is told again`() {
        machine.onView(view("running"), 0)
        machine.onView(view("kept", verdicts = listOf(verdict("accepted"))), second)
        assertEquals(listOf(Cue.DONE), machine.takeEvents())
        machine.onView(view("kept", verdicts = listOf(verdict("accepted").copy(throughputBps = 2e7))), 2 * second)
        assertEquals(emptyList(), machine.takeEvents(), "it is the same outcome")
        machine.onView(view("kept", verdicts = listOf(verdict("rejected"))), 3 * second)
        assertEquals(listOf(Cue.REJECTED), machine.takeEvents())
    }

    @Test
    fun `an old outcome is not announced when the app starts`() {
        machine.onView(view("kept", verdicts = listOf(verdict("rejected"))), 0)
        assertEquals(Phase.DONE, machine.state(0).phase)
        assertEquals(emptyList(), machine.takeEvents())
    }

    @Test
    fun `a trial that ended while the node was out of reach is told when it is back`() {
        machine.onView(view("running", live = Live(remainingS = 5.0)), 0)
        machine.onLink(LinkState.LOST, second)
        machine.state(20 * second).let {
            assertEquals(Phase.RUNNING, it.phase)
            assertEquals(second, it.staleSinceNs)
            assertEquals(0.0, it.remainingS, "the countdown ends, and says no more than that")
        }
        machine.onLink(LinkState.UP, 30 * second)
        machine.onView(
            view("kept", verdicts = listOf(verdict("interrupted", reason = "agent_restarted: it was started again"))),
            30 * second,
        )
        machine.state(30 * second).let {
            assertEquals(Phase.DONE, it.phase)
            assertEquals("interrupted", it.verdict?.outcome)
            assertNull(it.staleSinceNs)
        }
        assertEquals(listOf(Cue.NODE_LOST, Cue.INTERRUPTED), machine.takeEvents())
    }

    @Test
    fun `in a window nothing is said of the attempt before it`() {
        machine.onView(view("running"), 0)
        machine.onLink(LinkState.LOST, second)
        machine.onLink(LinkState.UP, 20 * second)
        machine.onView(view("running", key = TrialKey(2, 1), verdicts = listOf(verdict("accepted"))), 20 * second)
        assertEquals(listOf(Cue.NODE_LOST, Cue.GO), machine.takeEvents())
    }

    @Test
    fun `how an attempt ended is said before the next one's target`() {
        machine.onView(view("running"), 0)
        machine.onView(view("armed", key = TrialKey(2, 1), verdicts = listOf(verdict("rejected"))), 20 * second)
        assertEquals(listOf(Cue.REJECTED, Cue.TARGET), machine.takeEvents())
    }

    @Test
    fun `an agent that was started anew counts its views from the beginning`() {
        val late = view("running")
        val early = view("kept", verdicts = listOf(verdict("accepted"))).copy(version = 0uL)
        machine.onView(late, 0)
        machine.onView(early, 1)
        assertEquals(Phase.DONE, machine.state(1).phase)
    }

    @Test
    fun `another run starts from nothing`() {
        machine.onView(view("running"), 0)
        machine.onView(view("loaded", key = null, run = "run-2"), 1)
        machine.state(1).let {
            assertEquals(Phase.IDLE, it.phase)
            assertNull(it.key)
            assertNull(it.trialsTotal, "the old run's schedule says nothing about the new one")
        }
    }

    @Test
    fun `inbound the distance to the gate falls the other way`() {
        machine.onSchedule(schedule(trials = listOf(trial(1, direction = "inbound"))))
        machine.onView(view("armed"), 0)
        machine.onFix(fix(0, 10.0, lonDeg = 100 / 111_195.0))
        assertEquals(80.0, machine.state(0).toGateM!!, 0.01)
    }

    @Test
    fun `the speed is the node's own receiver's, by which the gate opens`() {
        machine.onFix(fix(0, 9.0))
        machine.onView(view("armed", live = Live(speedMps = 13.9)), 0)
        machine.state(second).let {
            assertEquals(SpeedSource.NODE, it.speedSource)
            assertEquals(13.9, it.speedMps)
            assertEquals(Zone.WITHIN, it.zone)
            assertTrue(it.hasFix)
            assertEquals(1.0, it.inBandS)
        }
        machine.onFix(fix(2 * second, 9.0))
        machine.state(2 * second).let {
            assertEquals(SpeedSource.PHONE, it.speedSource, "the node's speed is two seconds old")
            assertEquals(Zone.BELOW, it.zone)
        }
    }

    @Test
    fun `a node that takes the phone's fixes has no receiver of its own`() {
        machine.onFix(fix(0, 9.0))
        machine.onPush(true, 0)
        machine.onView(view("armed", live = Live(speedMps = 8.0)), 0)
        assertEquals(SpeedSource.PHONE to 9.0, machine.state(0).run { speedSource to speedMps })
        machine.onPush(false, 1)
        assertEquals(SpeedSource.NODE to 8.0, machine.state(1).run { speedSource to speedMps })
    }

    @Test
    fun `a node's receiver alone is enough, and its loss is told`() {
        machine.onView(view("armed", live = Live(speedMps = 13.9)), 0)
        assertEquals(13.9, machine.state(0).speedMps)
        machine.onView(view("armed", live = Live()), second)
        machine.state(second).let {
            assertNull(it.speedMps)
            assertEquals(Zone.UNKNOWN, it.zone)
            assertEquals(false, it.hasFix)
        }
        assertEquals(listOf(Cue.NO_GPS), machine.takeEvents())
    }

    @Test
    fun `a node that tells nothing new is not a receiver without a fix`() {
        machine.onView(view("armed", live = Live(speedMps = 13.9)), 0)
        assertEquals(false, machine.state(second).nodeIsSlow)
        machine.state(3 * second).let {
            assertNull(it.speedMps)
            assertTrue(it.nodeIsSlow)
        }
        assertEquals(emptyList(), machine.takeEvents())
        machine.onView(view("armed", live = Live()), 4 * second)
        assertEquals(false, machine.state(4 * second).nodeIsSlow)
        assertEquals(listOf(Cue.NO_GPS), machine.takeEvents())
    }

    @Test
    fun `the loss of the phone's own fixes is told, however slow the node is`() {
        machine.onView(view("armed"), 0)
        machine.onFix(fix(0, 13.9))
        assertEquals(SpeedSource.PHONE, machine.state(0).speedSource)
        assertEquals(false, machine.state(3 * second).nodeIsSlow)
        assertEquals(listOf(Cue.NO_GPS), machine.takeEvents())
    }

    @Test
    fun `the driver hears the target when a trial is armed, the way to the gate, and the window's end`() {
        machine.onView(view("loaded", key = null), 0)
        machine.onView(view("armed"), 0)
        machine.state(0)
        assertEquals(listOf(Cue.TARGET), machine.takeEvents())
        val inbound = schedule(trials = listOf(trial(1, direction = "inbound")))
        machine.onSchedule(inbound)
        val said = mutableListOf<Long>()
        for (metres in 305 downTo 15 step 10) { // to the gate, which is 20 m from the mark
            val now = (305 - metres) * second
            machine.onFix(fix(now, 10.0, lonDeg = (metres + 20) / 111_195.0))
            machine.state(now)
            if (Cue.DISTANCE in machine.takeEvents()) said += metres.toLong()
        }
        assertEquals(listOf(195L, 95L, 45L), said)
        machine.onView(view("running", live = Live(remainingS = 11.0)), 300 * second)
        val left = (0L..11L).filter {
            machine.state(300 * second + it * second)
            Cue.COUNTDOWN in machine.takeEvents()
        }
        assertEquals(listOf(1L, 6L), left, "ten and five seconds before the end")
    }

    /** Whatever comes, in whatever order, nothing is shown that contradicts itself. */
    @Test
    fun `property - no order of events makes a state that contradicts itself`() = repeat(300) { seed ->
        val random = Random(seed)
        val m = DriveMachine()
        var now = 0L
        repeat(200) { step ->
            now += random.nextLong(0, 3 * second)
            when (random.nextInt(8)) {
                0 -> m.onLink(LinkState.entries.random(random), now)
                1 -> m.onSchedule(schedule(run = "run-${random.nextInt(2)}"))
                2 -> m.onNoRun()
                3, 4 -> m.onView(anyView(random), now)
                5 -> m.onFix(Fix.none(now))
                else -> m.onFix(fix(now, random.nextDouble(0.0, 30.0)))
            }
            val s = m.state(now)
            val where = "seed $seed step $step: $s"
            if (s.phase == Phase.NO_RUN) assertTrue(s.key == null && s.remainingS == null && s.verdict == null, where)
            if (s.phase != Phase.RUNNING) assertNull(s.remainingS, where)
            if (s.verdict != null) assertTrue(s.phase == Phase.DONE && s.verdict?.trial == s.key?.trial, where)
            if (s.speedMps == null) assertTrue(s.inBandS == null && s.zone == Zone.UNKNOWN, where)
            if (s.zone != Zone.UNKNOWN) assertNotNull(s.band, where)
            if (s.nodeIsSlow) assertNull(s.speedMps, where)
            if (s.band != null) assertTrue(s.phase == Phase.ARMED || s.phase == Phase.RUNNING, where)
            if (s.goTo != null) assertTrue(s.band == null && s.phase in listOf(Phase.ARMED, Phase.IDLE), where)
            if (s.staleSinceNs != null) assertTrue(s.link != LinkState.UP, where)
            m.takeEvents()
        }
    }

    /**
     * A process may end in any state. The next one, told what the node and the
     * receiver tell again, shows the trial as the old one did, and announces
     * nothing that was announced before. What only the old one could know, how long the
     * speed was held and the charts, starts over.
     */
    @Test
    fun `property - a process that ended goes on where the trial is`() = repeat(100) { seed ->
        val random = Random(seed)
        val old = DriveMachine().apply { onLink(LinkState.UP, 0) }
        var now = 0L
        repeat(60) { step ->
            now += random.nextLong(0, second)
            val told = anyView(random).let { if (it.current == null) view(it.state, run = it.run) else it }
            val plan = schedule(run = told.run)
            val newest = fix(now, random.nextDouble(0.0, 30.0))
            val next = DriveMachine().apply { onLink(LinkState.UP, now) }
            for (machine in listOf(old, next)) {
                machine.onView(told, now)
                machine.onSchedule(plan)
                machine.onFix(newest)
            }
            val later = now + random.nextLong(0, second)
            val was = old.state(later)
            val shown = next.state(later)
            val where = "seed $seed step $step"
            assertEquals(was.phase, shown.phase, where)
            assertEquals(
                listOf(was.key, was.band, was.remainingS, was.detail),
                listOf(shown.key, shown.band, shown.remainingS, shown.detail),
                where,
            )
            assertEquals(
                listOf(was.verdict, was.toGateM, was.trialsTotal, was.goTo, was.isStopped),
                listOf(shown.verdict, shown.toGateM, shown.trialsTotal, shown.goTo, shown.isStopped),
                where,
            )
            assertTrue(
                next.takeEvents().none {
                    it in
                        listOf(Cue.GO, Cue.DONE, Cue.REJECTED, Cue.FAILED, Cue.INTERRUPTED)
                },
                where,
            )
            old.takeEvents()
        }
    }

    private fun anyView(random: Random) = view(
        state = listOf("loaded", "armed", "running", "restoring", "kept").random(random),
        key = TrialKey(random.nextInt(1, 3), random.nextInt(1, 3)).takeIf { random.nextInt(5) > 0 },
        verdicts = if (random.nextBoolean()) {
            listOf(
                verdict(listOf("accepted", "rejected", "failed", "interrupted").random(random)),
            )
        } else {
            emptyList()
        },
        live = Live(remainingS = random.nextDouble(0.0, 10.0)).takeIf { random.nextBoolean() },
        run = "run-${random.nextInt(2)}",
    ).copy(toStart = random.nextInt(4) == 0, ended = random.nextInt(4) == 0)
}
