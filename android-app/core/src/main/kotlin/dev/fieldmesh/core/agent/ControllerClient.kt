package dev.fieldmesh.core.agent

import dev.fieldmesh.core.wire.Campaigns
import dev.fieldmesh.core.wire.Choice
import dev.fieldmesh.core.wire.Places
import dev.fieldmesh.core.wire.Planned
import dev.fieldmesh.core.wire.Preflight
import dev.fieldmesh.core.wire.Run
import dev.fieldmesh.core.wire.RunFiles
import dev.fieldmesh.core.wire.RunRequest
import dev.fieldmesh.core.wire.Runs
import kotlinx.coroutines.CoroutineDispatcher
import java.io.File
import java.io.IOException
import java.io.InputStream
import java.time.Duration

/** What an experimenter asks of the controller. Every call is idempotent. */
interface ControllerApi {
    suspend fun campaigns(): Campaigns
    suspend fun plan(choice: Choice): Planned
    suspend fun preflight(choice: Choice): Preflight
    suspend fun start(request: RunRequest): Run

    /** With [known] it waits up to [waitMs] for another version. */
    suspend fun runs(known: ULong?, waitMs: Long): Runs

    /** What is done with a run is [how]: pause, resume or end. */
    suspend fun steer(run: String, how: String): Run
    suspend fun places(run: String): Places
    suspend fun files(run: String): RunFiles

    /** Fetches one of a run's files; [to] is replaced when all of it is there. */
    suspend fun fetch(run: String, file: String, to: File)
}

/** Calls `fieldmesh serve`; see protocols/wire/openapi.yaml. No file has more than [mostFileBytes]. */
class ControllerClient(
    pairing: Pairing,
    identity: Identity,
    io: CoroutineDispatcher,
    way: () -> Way = { Way.PREFERRED },
    timeout: Duration = Duration.ofSeconds(5),
    private val mostFileBytes: Long = 256L shl 20,
) : ControllerApi {
    private val calls = Calls(pairing, identity, io, way, timeout)

    override suspend fun campaigns(): Campaigns = calls.call(calls.get("v1/campaigns"), WORKS_MS)

    override suspend fun plan(choice: Choice): Planned = calls.call(calls.post("v1/plan", choice), WORKS_MS)

    override suspend fun preflight(choice: Choice): Preflight =
        calls.call(calls.post("v1/preflight", choice), ASKS_NODES_MS)

    override suspend fun start(request: RunRequest): Run = calls.call(calls.post("v1/runs", request), WORKS_MS)

    override suspend fun runs(known: ULong?, waitMs: Long): Runs {
        val query = if (known == null) emptyMap() else mapOf("known" to "$known", "wait_ms" to "$waitMs")
        return calls.call(calls.get("v1/runs", query), waitMs)
    }

    override suspend fun steer(run: String, how: String): Run =
        calls.call(calls.post("v1/runs/$run/$how"), ASKS_NODES_MS)

    override suspend fun places(run: String): Places = calls.call(calls.get("v1/runs/$run/places"), MAKES_FILES_MS)

    override suspend fun files(run: String): RunFiles = calls.call(calls.get("v1/runs/$run/files"), MAKES_FILES_MS)

    override suspend fun fetch(run: String, file: String, to: File) {
        calls.stream(calls.get("v1/runs/$run/files/$file"), MAKES_FILES_MS) { response ->
            val part = here {
                to.parentFile?.mkdirs()
                File.createTempFile("part", null, to.parentFile) // a call that was cancelled may still write its own
            }
            try {
                response.body?.byteStream()?.let { body -> copy(body, part) }
                here { if (!part.renameTo(to)) throw IOException("$to cannot be replaced") }
            } finally {
                part.delete()
            }
        }
    }

    private fun copy(body: InputStream, to: File) = here { to.outputStream() }.use { out ->
        val buffer = ByteArray(DEFAULT_BUFFER_SIZE)
        var left = mostFileBytes
        while (true) {
            val n = body.read(buffer)
            if (n < 0) break
            left -= n
            if (left < 0) throw AgentException.BadAnswer(IOException("the file has more than $mostFileBytes bytes"))
            here { out.write(buffer, 0, n) }
        }
    }

    /** Work on this phone's own storage. */
    private fun <T> here(work: () -> T): T = try {
        work()
    } catch (e: IOException) {
        throw AgentException.Unstored(e)
    }

    private companion object {
        // How long an answer may take beyond the usual time.
        const val WORKS_MS = 25_000L
        const val ASKS_NODES_MS = 110_000L
        const val MAKES_FILES_MS = 120_000L
    }
}
