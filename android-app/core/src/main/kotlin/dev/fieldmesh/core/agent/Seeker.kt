package dev.fieldmesh.core.agent

import dev.fieldmesh.core.drive.DriveState
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.channelFlow
import kotlinx.coroutines.flow.collectLatest
import kotlinx.coroutines.flow.distinctUntilChanged
import kotlinx.coroutines.flow.firstOrNull
import kotlinx.coroutines.launch
import kotlinx.coroutines.withTimeoutOrNull

/** What agents and controllers are called on a network (internal/dnssd). */
object Service {
    const val TYPE = "_fieldmesh._tcp"

    /** The key of the TXT record that has the pin. */
    const val PIN = "pin"

    /** What a record tells, if it is one of ours: anybody may write anything into it. */
    fun read(host: String?, port: Int, pin: ByteArray?): Pairing? =
        if (host == null || pin == null) null else Pairing.parse("fieldmesh:$host:$port#${pin.decodeToString()}")
}

/** Looks on the phone's networks for agents and controllers, for as long as it is collected. */
fun interface Finder {
    /** Where each says that it is, and which key it has. Nothing of it is checked. */
    fun peers(): Flow<Pairing>
}

/**
 * Finds a peer again whose address has changed. It looks while the peer is lost, and not while [mayLook] forbids it:
 * its questions would be in what is measured.
 */
class Seeker(private val finder: Finder, private val mayLook: () -> Boolean = { true }) {

    /**
     * Looks whenever [lost] says that [known] is, and tells [found] where its key is shown: [shows] decides that, by
     * TLS, for a peer that claims to have it. A peer on this phone itself does not move.
     */
    suspend fun follow(
        known: Pairing,
        lost: Flow<Boolean>,
        shows: suspend (Pairing) -> Boolean,
        found: (Pairing) -> Unit,
    ) {
        if (known.host == Pairing.LOOPBACK) awaitCancellation()
        lost.distinctUntilChanged().collectLatest { if (it) found(look(known, shows)) }
    }

    private suspend fun look(known: Pairing, shows: suspend (Pairing) -> Boolean): Pairing {
        delay(PATIENCE_MS)
        var pause = FIRST_PAUSE_MS
        while (true) {
            while (!mayLook()) delay(AGAIN_MS)
            withTimeoutOrNull(LOOK_MS) { first(known, shows) }?.let { return it }
            delay(pause)
            pause = (pause * 2).coerceAtMost(LAST_PAUSE_MS)
        }
    }

    /** Those who claim the key are asked beside each other: one that says nothing holds up none. */
    private suspend fun first(known: Pairing, shows: suspend (Pairing) -> Boolean) = channelFlow {
        val asked = mutableSetOf(known)
        finder.peers().collect { at ->
            if (at.pin == known.pin && asked.size <= MOST && asked.add(at)) launch { if (shows(at)) send(at) }
        }
    }.firstOrNull()

    companion object {
        /** An agent that is started again is there sooner. */
        private const val PATIENCE_MS = 5_000L
        private const val LOOK_MS = 10_000L
        private const val FIRST_PAUSE_MS = 5_000L
        private const val LAST_PAUSE_MS = 60_000L
        private const val AGAIN_MS = 1_000L

        /** How many addresses are asked in one look. */
        private const val MOST = 16

        /** How long after its node was lost a trial may go on, beside its own time. */
        private const val GATE_S = 120.0

        /** Whether a trial may be measured now, so that nothing is to be asked of the network. */
        fun mayMeasure(drive: DriveState, nowNs: Long): Boolean {
            val since = drive.staleSinceNs ?: return drive.phase.isUnderWay
            return drive.phase.isUnderWay && (nowNs - since) / 1e9 < (drive.durationS ?: 0.0) + GATE_S
        }
    }
}

/** Whether a call meets the peer that has the pinned key, whatever it answers then. */
suspend fun meets(call: suspend () -> Unit): Boolean = try {
    call()
    true
} catch (e: AgentException) {
    when (e) {
        is AgentException.Unreachable, is AgentException.WrongNode, is AgentException.NoKey -> false
        else -> true
    }
}
