package dev.fieldmesh.core.agent

import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.wire.Gps
import dev.fieldmesh.core.wire.PushedFix
import dev.fieldmesh.core.wire.WireError
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
 * is and not where it was. [fixes] may begin with one of long ago, which is left
 * out too. A node that has a gpsd of its own, or follows another phone, says so;
 * it is asked again now and then, because that may change. [pushed] hears each
 * time why the node does not take this phone's fixes, null when it does.
 */
suspend fun pushFixes(fixes: Flow<Fix>, sink: FixSink, nowNs: () -> Long, pushed: (refusal: WireError?) -> Unit = {}) {
    fixes.conflate().collect { fix ->
        if (nowNs() - fix.bootNs > MOST_AGE_NS) return@collect
        try {
            sink.pushFix(fix.toPush(nowNs()))
            pushed(null)
        } catch (e: AgentException.Refused) {
            val hasAnother = e.error.code == "conflict"
            if (hasAnother) pushed(e.error)
            delay(if (hasAnother) OTHER_GPS_MS else LOST_MS)
        } catch (_: AgentException) {
            delay(LOST_MS)
        }
    }
}

private const val OTHER_GPS_MS = 30_000L
private const val LOST_MS = 500L
private const val MOST_AGE_NS = 5_000_000_000L
