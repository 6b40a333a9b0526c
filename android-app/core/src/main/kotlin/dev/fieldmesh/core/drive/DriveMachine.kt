package dev.fieldmesh.core.drive

import dev.fieldmesh.core.app.CampaignState
import dev.fieldmesh.core.cue.Band
import dev.fieldmesh.core.cue.Cue
import dev.fieldmesh.core.cue.Milestones
import dev.fieldmesh.core.cue.Zone
import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.gps.SpeedFilter
import dev.fieldmesh.core.wire.CampaignView
import dev.fieldmesh.core.wire.Schedule
import dev.fieldmesh.core.wire.Trial
import dev.fieldmesh.core.wire.TrialKey
import dev.fieldmesh.core.wire.Verdict

/**
 * Makes the driver's view of the present trial from what the node and the
 * receiver tell, in whatever order they tell it. It never guesses: while the
 * node is silent the last phase stays, marked as stale, and no countdown goes
 * on past the window's end. Time comes in as an argument. Not safe for several
 * threads.
 */
class DriveMachine {
    private var link = LinkState.UNPAIRED
    private var silentSinceNs: Long? = null
    private var view: CampaignView? = null
    private var viewNs = 0L
    private var schedule: Schedule? = null
    private var fix: Fix? = null
    private val filter = SpeedFilter()
    private var inBandSinceNs: Long? = null
    private var lastKey: TrialKey? = null // of the newest attempt that was seen
    private var over: TrialKey? = null // whose end was told last
    private val throughput = History()
    private val signal = History()
    private var signalSource: SignalSource? = null
    private var signalPeers = 1
    private val events = mutableListOf<Cue>()
    private var fixWasLost = false
    private var lastSource: SpeedSource? = null // of the newest speed that there was
    private var fedNs: Long? = null // when the node took a fix of this phone last
    private val toGate = Milestones(500.0, 200.0, 100.0, 50.0)
    private val untilClose = Milestones(10.0, 5.0)

    /** What happened since the last call and is to be said. */
    fun takeEvents(): List<Cue> = events.toList().also { events.clear() }

    fun onLink(state: LinkState, nowNs: Long) {
        val lost = state != LinkState.UP
        if (lost && link == LinkState.UP) {
            silentSinceNs = nowNs
            if (state != LinkState.UNPAIRED && isAwaited()) events += Cue.NODE_LOST
        }
        if (!lost) silentSinceNs = null
        if (state == LinkState.UNPAIRED) forget()
        link = state
    }

    fun onSchedule(newest: Schedule) {
        schedule = newest
    }

    /** The node holds no run. */
    fun onNoRun() = forget()

    fun onView(newest: CampaignView, nowNs: Long) {
        val old = view
        if (old != null && old.run == newest.run) {
            tell(old, newest)
        } else {
            val plan = schedule
            forget()
            schedule = plan?.takeIf { it.run == newest.run }
        }
        newest.current?.let { key ->
            if (key != lastKey) {
                throughput.clear()
                inBandSinceNs = null
            }
            lastKey = key
        }
        view = newest
        viewNs = nowNs
        newest.live?.throughputBps?.let { throughput.add(nowNs, it) }
        noteBand(nowNs)
    }

    fun onFix(newest: Fix) {
        fix = newest
        filter.add(newest)
        noteBand(newest.bootNs)
        if (newest.hasPosition) fixWasLost = false
    }

    /** Whether the node takes this phone's fixes: then it has no receiver of its own. */
    fun onPush(taken: Boolean, nowNs: Long) {
        fedNs = nowNs.takeIf { taken }
    }

    /** The tested radio's signal in dBm, the strongest of [peers]. Another source's is no part of the same line. */
    fun onSignal(dbm: Double, source: SignalSource, nowNs: Long, peers: Int = 1) {
        if (source != signalSource) signal.clear()
        signalSource = source
        signalPeers = peers
        signal.add(nowNs, dbm)
    }

    fun state(nowNs: Long): DriveState {
        val (speed, source) = speed(nowNs)
        if (speed == null) inBandSinceNs = null
        val fresh = fresh(nowNs)
        lastSource = source ?: lastSource
        val nodeIsSlow = isSlow(speed, nowNs)
        noteFix(fresh != null || source == SpeedSource.NODE, nodeIsSlow)
        val phase = phase()
        val trial = trial(shownKey())
        val band = band()
        val toGateM = if (trial != null && fresh != null) distanceToGateM(trial, fresh) else null
        val remainingS = remaining(phase, nowNs)
        if (toGate.passed(toGateM.takeIf { awaitsGate() })) events += Cue.DISTANCE
        if (untilClose.passed(remainingS.takeIf { silentSinceNs == null })) events += Cue.COUNTDOWN
        return DriveState(
            link = link,
            phase = phase,
            staleSinceNs = silentSinceNs.takeIf { phase != Phase.NO_RUN },
            key = shownKey(),
            trialsTotal = schedule?.trials?.size,
            band = band,
            speedMps = speed,
            speedSource = source,
            zone = zone(nowNs),
            nodeIsSlow = nodeIsSlow,
            hasFix = fresh != null || source == SpeedSource.NODE,
            trackDeg = trackDeg(nowNs),
            wantedTrackDeg = trial?.let(::wantedTrack),
            toGateM = toGateM,
            inBandS = inBandSinceNs?.let { (nowNs - it).coerceAtLeast(0) / 1e9 },
            holdS = trial?.gate?.holdS,
            remainingS = remainingS,
            durationS = trial?.durationS,
            detail = view?.detail.takeIf { phase == Phase.ARMED || phase == Phase.IDLE || phase == Phase.DONE },
            verdict = lastKey?.let { view?.verdictOf(it) }.takeIf { phase == Phase.DONE },
            goTo = goTo(phase),
            isStopped = view?.let(::isStopped) == true,
            over = over,
            throughput = throughput.points(nowNs),
            signal = signal.points(nowNs),
            signalSource = signalSource,
            signalPeers = signalPeers,
        )
    }

    private fun forget() {
        view = null
        schedule = null
        lastKey = null
        over = null
        inBandSinceNs = null
        lastSource = null
        throughput.clear()
        signal.clear()
        signalSource = null
    }

    /** The node's receiver is the one that the gate goes by; where it has none, the phone's. */
    private fun speed(nowNs: Long): Pair<Double?, SpeedSource?> {
        val fed = fedNs?.let { nowNs - it <= FED_NS } ?: false
        val own = view?.live?.speedMps?.takeIf { !fed && !isOld(nowNs) }
        if (own != null) return own to SpeedSource.NODE
        val phones = filter.at(nowNs) ?: return null to null
        return phones to SpeedSource.PHONE
    }

    /** The newest fix of this phone, unless it is old. */
    private fun fresh(nowNs: Long) = fix?.takeIf { it.hasPosition && nowNs - it.bootNs <= SpeedFilter.STALE_NS }

    /** By the receiver that the gate goes by, as the speed. */
    private fun trackDeg(nowNs: Long): Double? {
        val own = view?.live?.trackDeg?.takeIf { speed(nowNs).second == SpeedSource.NODE }
        return own ?: fresh(nowNs)?.trackDeg
    }

    /** The view says nothing of the present. */
    private fun isOld(nowNs: Long) = nowNs - viewNs > SpeedFilter.STALE_NS

    /** Whether there is no speed because the node, whose receiver has it, does not tell it. */
    private fun isSlow(speed: Double?, nowNs: Long): Boolean {
        if (speed != null || view == null) return false
        return lastSource != SpeedSource.PHONE && isOld(nowNs)
    }

    private fun noteBand(nowNs: Long) {
        inBandSinceNs = if (zone(nowNs) == Zone.WITHIN) inBandSinceNs ?: nowNs else null
    }

    private fun zone(nowNs: Long): Zone {
        val speed = speed(nowNs).first
        val zone = band()?.zone(speed) ?: return Zone.UNKNOWN
        if (phase() != Phase.ARMED || speed == null || speed <= STANDING_MPS) return zone
        val turned = trackDeg(nowNs)?.let { track -> trial(shownKey())?.let { isTurned(it, track) } }
        return if (turned == true) Zone.TURNED else zone
    }

    /**
     * What the newer view has that the older had not, in its order: what is said last is what the driver goes by. An
     * attempt that began and ended unseen is told by its end.
     */
    private fun tell(old: CampaignView, newest: CampaignView) {
        tellEnd(old, newest)
        if (!old.ended && isStopped(newest)) events += Cue.STOPPED
        if (newest.toStart) { // its target is told there
            if (!old.toStart || old.current != newest.current) events += Cue.TO_START
            return
        }
        val step = newest.current?.let { BEGINNINGS[newest.state] }
        if (step != null && isBegun(old, newest)) events += step
    }

    /** How the attempt that was watched came out; in another's window a word about it would mislead. */
    private fun tellEnd(old: CampaignView, newest: CampaignView) {
        val watched = old.current ?: lastKey ?: return
        if (newest.state == "running" && newest.current != watched) return
        val verdict = newest.verdictOf(watched)
        // The controller judges again what a node has judged by itself.
        if (verdict == null || verdict.outcome == old.verdictOf(watched)?.outcome) return
        over = watched
        events += when (verdict.outcome) {
            "accepted" -> Cue.DONE
            "rejected" -> Cue.REJECTED
            "interrupted" -> Cue.INTERRUPTED
            else -> Cue.FAILED
        }
    }

    /** Another attempt or state, or the car has come to its start: the target is told again. */
    private fun isBegun(old: CampaignView, newest: CampaignView): Boolean {
        if (old.toStart && !newest.toStart) return true
        return old.state != newest.state || old.current != newest.current
    }

    private fun noteFix(fresh: Boolean, nodeIsSlow: Boolean) {
        if (fresh) fixWasLost = false
        if (fresh || nodeIsSlow) return
        val had = fix != null || lastSource != null
        if (fixWasLost || !had) return
        fixWasLost = true
        if (phase() in UNDER_WAY) events += Cue.NO_GPS
    }

    /** Whether a trial is under way, or may begin while the node is not heard. */
    private fun isAwaited(): Boolean {
        val now = view?.takeIf { !it.ended } ?: return false
        return phase().isUnderWay || campaign(now)?.next != null
    }

    /** Whether it was ended before the last trial was done. */
    private fun isStopped(now: CampaignView) = now.ended && campaign(now)?.isStopped == true

    private fun campaign(now: CampaignView) = schedule?.takeIf { it.run == now.run }?.let { CampaignState.of(it, now) }

    private fun phase(): Phase {
        val v = view ?: return Phase.NO_RUN
        if (v.current == null) return if (lastKey?.let(v::verdictOf) != null) Phase.DONE else Phase.IDLE
        return when (v.state) {
            "armed" -> Phase.ARMED
            "running" -> Phase.RUNNING
            "restoring" -> Phase.RESTORING
            "kept" -> Phase.DONE
            else -> Phase.IDLE
        }
    }

    /** The attempt under way; between attempts the one that is over. */
    private fun shownKey(): TrialKey? = view?.current ?: lastKey

    private fun trial(key: TrialKey?): Trial? = schedule?.trials?.find { it.number == key?.trial }

    /** The speed to bring the car to and hold; none when nothing is to be driven. */
    private fun band(): Band? {
        if (phase() != Phase.ARMED && phase() != Phase.RUNNING || view?.toStart == true) return null
        val trial = trial(view?.current) ?: return null
        val target = trial.speedMps?.takeIf { it > 0 } ?: return null
        return Band(target, trial.acceptance.speedBandMps ?: return null)
    }

    /** While a trial is being armed, too: out of the others' reach that may end at the start alone. */
    private fun goTo(phase: Phase): Goal? {
        val now = view?.takeIf { it.toStart && (phase == Phase.IDLE || phase == Phase.ARMED) } ?: return null
        return if (trial(now.current)?.course?.kind == "parked") Goal.MARK else Goal.START
    }

    /** Whether the car is to drive to the gate: it is not on its way back to the start. */
    private fun awaitsGate() = phase() == Phase.ARMED && view?.toStart != true

    private fun remaining(phase: Phase, nowNs: Long): Double? {
        if (phase != Phase.RUNNING) return null
        val told = view?.live?.remainingS ?: return null
        return (told - (nowNs - viewNs) / 1e9).coerceAtLeast(0.0)
    }

    private companion object {
        val UNDER_WAY = setOf(Phase.ARMED, Phase.RUNNING)

        /** What is said when an attempt comes to a state. */
        val BEGINNINGS = mapOf("armed" to Cue.TARGET, "running" to Cue.GO)

        /** A car that stands has no track. As the gate has it (node-agent/trial/gate). */
        const val STANDING_MPS = 1.0

        /** As long as an agent holds a phone that pushes for connected. */
        const val FED_NS = 3_000_000_000L
    }
}

private fun CampaignView.verdictOf(key: TrialKey): Verdict? = trials.find { it.number == key.trial }?.attempts?.find {
    it.attempt ==
        key.attempt
}

private fun wantedTrack(trial: Trial): Double? = when (trial.direction) {
    "outbound" -> trial.course.headingDeg
    "inbound" -> (trial.course.headingDeg + 180) % 360
    else -> null
}

/** The last half minute of a value. */
private class History {
    private val kept = ArrayDeque<Point>()

    fun add(nowNs: Long, value: Double) {
        kept.addLast(Point(nowNs, value))
        while (kept.size > MOST) kept.removeFirst()
    }

    fun points(nowNs: Long): List<Point> {
        while (kept.isNotEmpty() && nowNs - kept.first().bootNs > SPAN_NS) kept.removeFirst()
        return kept.toList()
    }

    fun clear() = kept.clear()

    private companion object {
        const val MOST = 600
        const val SPAN_NS = 30_000_000_000L
    }
}
