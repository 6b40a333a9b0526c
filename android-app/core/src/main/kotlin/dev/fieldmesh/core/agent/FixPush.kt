package dev.fieldmesh.core.agent

import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.wire.Gps
import dev.fieldmesh.core.wire.PushedFix
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.conflate

/** Where fixes go. */
fun interface FixSink {
    suspend fun pushFix(fix: PushedFix): Gps
}

/**
 * Pushes the newest fix, and then the newest again: while the node is slow or
 * out of reach older ones are left out, since a node needs to know where it
 * is and not where it was. A node that has a gpsd of its own says so; it is
 * asked again now and then, because its configuration may change. [pushed]
 * hears each time whether the node took the fix.
 */
suspend fun pushFixes(fixes: Flow<Fix>, sink: FixSink, nowNs: () -> Long, pushed: (taken: Boolean) -> Unit = {}) {
    fixes.conflate().collect { fix ->
        try {
            sink.pushFix(fix.toPush(nowNs()))
            pushed(true)
        } catch (_: AgentException.Refused) {
            pushed(false)
            delay(REFUSED_MS)
        } catch (_: AgentException) {
            delay(LOST_MS)
        }
    }
}

private const val REFUSED_MS = 30_000L
private const val LOST_MS = 500L
