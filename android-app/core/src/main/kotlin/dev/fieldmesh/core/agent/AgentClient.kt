package dev.fieldmesh.core.agent

import dev.fieldmesh.core.wire.AbortRequest
import dev.fieldmesh.core.wire.AttachmentHeld
import dev.fieldmesh.core.wire.AttachmentPut
import dev.fieldmesh.core.wire.CampaignView
import dev.fieldmesh.core.wire.ClockReply
import dev.fieldmesh.core.wire.Gps
import dev.fieldmesh.core.wire.NodeStatus
import dev.fieldmesh.core.wire.Note
import dev.fieldmesh.core.wire.PushedFix
import dev.fieldmesh.core.wire.RestoreReport
import dev.fieldmesh.core.wire.Schedule
import dev.fieldmesh.core.wire.SpoolPosition
import dev.fieldmesh.core.wire.WiFiReading
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.serialization.SerializationException
import java.time.Duration

/** A page of the node's spool; [last] is where to read on. */
data class RecordPage(val position: SpoolPosition, val lines: List<String>)

/** Calls a node's agent; see protocols/wire/openapi.yaml. Every call is idempotent and can be cancelled. */
class AgentClient(
    pairing: Pairing,
    identity: Identity,
    io: CoroutineDispatcher,
    way: () -> Way = { Way.PREFERRED },
    timeout: Duration = Duration.ofSeconds(5),
) : NodeApi,
    FixSink,
    WiFiSink,
    AttachmentSink {
    private val calls = Calls(pairing, identity, io, way, timeout)

    override suspend fun status(): NodeStatus = calls.call(calls.get("v1/node"))

    suspend fun clock(): ClockReply = calls.call(calls.get("v1/clock"))

    override suspend fun schedule(run: String): Schedule = calls.call(calls.get("v1/runs/$run/schedule"))

    /** With [known] it waits up to [waitMs] for another version of the view. */
    override suspend fun view(run: String, known: ULong?, waitMs: Long): CampaignView {
        val query = if (known == null) emptyMap() else mapOf("known" to "$known", "wait_ms" to "$waitMs")
        return calls.call(calls.get("v1/runs/$run", query), waitMs)
    }

    /** It is answered when the attempt is left. */
    suspend fun abort(run: String, request: AbortRequest): CampaignView =
        calls.call(calls.post("v1/runs/$run/abort", request), ABORT_MS)

    suspend fun restore(): RestoreReport = calls.call(calls.post("v1/restore"), RESTORE_MS)

    /**
     * Pushes a fix. Its age is of the moment before the call, and the node dates it by its arrival: a call that takes
     * longer than [PUSH] is given up.
     */
    override suspend fun pushFix(fix: PushedFix): Gps = calls.hurried(calls.post("v1/gps", fix), PUSH) {
        it.read(Gps.serializer())
    }

    /** Pushes what Android says about the Wi-Fi; only the node that this app has started takes it. As [pushFix]. */
    override suspend fun pushWiFi(reading: WiFiReading) = calls.hurried(calls.post("v1/wifi", reading), PUSH) { }

    override suspend fun note(note: Note): SpoolPosition = calls.call(calls.post("v1/notes", note))

    override suspend fun attachment(sha256: String): AttachmentHeld =
        calls.call(calls.get("v1/attachments", mapOf("sha256" to sha256)))

    /** A piece takes three seconds at 200 kbit/s. */
    override suspend fun putAttachment(piece: AttachmentPut): AttachmentHeld =
        calls.call(calls.put("v1/attachments", piece), PIECE_MS)

    override suspend fun records(after: SpoolPosition?, limit: Int, waitMs: Long): RecordPage {
        val place = if (after == null) emptyMap() else mapOf("epoch" to after.epoch, "after" to "${after.seq}")
        val request = calls.get("v1/records", place + mapOf("limit" to "$limit", "wait_ms" to "$waitMs"))
        return calls.exchange(request, waitMs) { response ->
            val lines = generateSequence(response.bounded()::readUtf8Line).filter(String::isNotEmpty).toList()
            val epoch = response.header("Fieldmesh-Epoch") ?: throw SerializationException("no Fieldmesh-Epoch")
            val last =
                response.header("Fieldmesh-Last")?.toLongOrNull() ?: throw SerializationException("no Fieldmesh-Last")
            RecordPage(SpoolPosition(epoch, last), lines)
        }
    }

    private companion object {
        /** With the usual time as long as a controller waits (AbortWithin in controller/run/engine). */
        const val ABORT_MS = 15_000L
        const val RESTORE_MS = 60_000L
        const val PIECE_MS = 10_000L
        val PUSH: Duration = Duration.ofSeconds(1)
    }
}
