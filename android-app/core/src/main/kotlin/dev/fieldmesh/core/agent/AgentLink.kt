package dev.fieldmesh.core.agent

import dev.fieldmesh.core.drive.SignalSource
import dev.fieldmesh.core.wire.CampaignView
import dev.fieldmesh.core.wire.NodeStatus
import dev.fieldmesh.core.wire.Record
import dev.fieldmesh.core.wire.Schedule
import dev.fieldmesh.core.wire.SpoolPosition
import dev.fieldmesh.core.wire.Station
import dev.fieldmesh.core.wire.WiFi
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.FlowCollector
import kotlinx.coroutines.flow.flow
import kotlinx.serialization.SerializationException

/** What an agent is asked, again and again. */
interface NodeApi {
    suspend fun status(): NodeStatus
    suspend fun schedule(run: String): Schedule
    suspend fun view(run: String, known: ULong? = null, waitMs: Long = 0): CampaignView
    suspend fun records(after: SpoolPosition?, limit: Int, waitMs: Long = 0): RecordPage
}

/** What is heard of a node. */
sealed interface Heard {
    data class Status(val status: NodeStatus) : Heard
    data class Plan(val schedule: Schedule) : Heard
    data class View(val view: CampaignView) : Heard

    /** Of [peer], the strongest of so many [peers]; an access point is not named. */
    data class Signal(val dbm: Double, val source: SignalSource, val peer: String? = null, val peers: Int = 1) : Heard
    data object NoRun : Heard
    data class Lost(val why: AgentException) : Heard
}

/** Follows a node for as long as it is collected, over every break of the network and every restart of the agent. */
class AgentLink(private val api: NodeApi, private val nowNs: () -> Long) {
    private var run: String? = null
    private var known: ULong? = null
    private var place: SpoolPosition? = null
    private var statusNs: Long? = null

    fun follow(): Flow<Heard> = flow {
        startOver()
        var wait = FIRST_RETRY_MS
        while (true) {
            try {
                round()
                wait = FIRST_RETRY_MS
            } catch (e: AgentException) {
                startOver()
                emit(Heard.Lost(e))
                delay(wait)
                wait = (wait * 2).coerceAtMost(LAST_RETRY_MS)
            }
        }
    }

    private suspend fun FlowCollector<Heard>.round() {
        val asked = statusNs
        if (asked == null || nowNs() - asked >= STATUS_EVERY_NS) askStatus()
        val held = run
        if (held == null) {
            delay(NO_RUN_MS)
            return
        }
        try {
            // The wait ends with the first change; without one, the live figures are read again after it.
            val view = api.view(held, known, LIVE_EVERY_MS)
            known = view.version
            emit(Heard.View(view))
            if (view.state == "running") readSignal(view.position) else place = null
        } catch (e: AgentException.Refused) {
            if (e.error.code != "not_found") throw e
            startOver() // another run has come, or none is held any more
        }
    }

    private suspend fun FlowCollector<Heard>.askStatus() {
        val status = api.status()
        val isFirst = statusNs == null
        statusNs = nowNs()
        emit(Heard.Status(status))
        if (status.run == run && !isFirst) return
        run = status.run
        known = null
        val held = status.run ?: return emit(Heard.NoRun)
        emit(Heard.Plan(api.schedule(held)))
    }

    private suspend fun FlowCollector<Heard>.readSignal(newest: SpoolPosition) {
        val after = place ?: newest
        val page = api.records(after, RECORDS)
        place = page.position
        newestSignal(page.lines)?.let { emit(it) }
    }

    private fun startOver() {
        run = null
        known = null
        place = null
        statusNs = null
    }

    private companion object {
        const val STATUS_EVERY_NS = 2_000_000_000L
        const val LIVE_EVERY_MS = 250L
        const val NO_RUN_MS = 1000L
        const val FIRST_RETRY_MS = 250L
        const val LAST_RETRY_MS = 4000L
        const val RECORDS = 2000
    }
}

/**
 * The newest signal that records tell: where several peers are heard, that of the strongest. Which of them the trial is
 * with is not known here.
 */
private fun newestSignal(lines: List<String>): Heard.Signal? {
    val byPeer = LinkedHashMap<String?, Heard.Signal>()
    lines.mapNotNull(::signalOf).forEach { byPeer[it.peer] = it }
    val last = byPeer.values.lastOrNull() ?: return null
    val nodes = byPeer.values.filter { it.source == last.source }
    return nodes.maxBy { it.dbm }.copy(peers = nodes.size)
}

/** The signal that a record tells; null for none, and for one of a peer that is silent now. */
internal fun signalOf(line: String): Heard.Signal? = try {
    when (val body = Record.decode(line).body) {
        is Station ->
            body.signalDbm?.takeIf { body.inactiveMs.let { it != null && it <= HEARD_MS } }
                ?.let { Heard.Signal(it, SignalSource.NODES, body.peer) }
        is WiFi -> body.signalDbm?.let { Heard.Signal(it, SignalSource.ACCESS_POINT) }
        else -> null
    }
} catch (_: SerializationException) {
    null // what this version cannot read, it does not show
}

/** For how long a silent peer's last signal is its present one: `wire.HeardMs`. */
internal const val HEARD_MS = 300
