package dev.fieldmesh.core.node

import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.async
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import java.io.IOException
import java.util.concurrent.TimeUnit

/** What this phone's own node does. */
sealed interface NodeState {
    data object Off : NodeState

    data object Starting : NodeState

    /** It waits until it is paired with a controller. */
    data object Unpaired : NodeState

    data class Running(val sinceNs: Long) : NodeState

    /**
     * It, or a part of it, ended by itself and is started again. [said] is the last that it said in this life, or why
     * it could not be started; [status] is with what it ended, 128 and the signal's number where one ended it, and null
     * when only a part of it did or it could not be started.
     */
    data class Failing(val said: String, val status: Int? = null) : NodeState {
        /** The signal that ended it, as Android does with what an app has started. */
        val signal: Int? get() = status?.minus(128)?.takeIf { it > 0 }
    }
}

/** Keeps a node's agent running: what it says is read, and when it ends by itself it is started again, ever later. */
class NodeKeeper(private val nowNs: () -> Long, private val io: CoroutineDispatcher) {
    private val now = MutableStateFlow<NodeState>(NodeState.Off)
    private val one = Mutex()
    private val lines = ArrayDeque<String>()
    private var last = "" // of this life
    private var lacksKeys = false // since a part of it ended last

    val state: StateFlow<NodeState> = now.asStateFlow()

    /** The newest of what it said in all its lives, and how they ended. */
    val said: List<String> get() = synchronized(lines) { lines.toList() }

    /** Goes on until it is cancelled. The agent is ended in order then, and another begins after that. */
    suspend fun keep(start: () -> Process) = one.withLock {
        try {
            var wait = FIRST_MS
            while (true) {
                now.value = NodeState.Starting
                last = ""
                lacksKeys = false
                val begun = nowNs()
                val status = live(start)
                status?.let { keepLine("The app: it ended with status $it.") }
                if (nowNs() - begun >= STEADY_NS) wait = FIRST_MS
                now.value = NodeState.Failing(last, status)
                delay(wait)
                wait = minOf(2 * wait, LONGEST_MS)
            }
        } finally {
            now.value = NodeState.Off
        }
    }

    /** One life of the agent: it returns the status when that ends by itself, and null when it could not begin. */
    private suspend fun live(start: () -> Process): Int? = coroutineScope {
        val process = try {
            withContext(NonCancellable + io) { start() } // one that has begun is not lost
        } catch (e: IOException) {
            hear(e.message ?: e.javaClass.simpleName)
            return@coroutineScope null
        }
        val reading = async(io) { listen(process) }
        try {
            reading.await()
        } catch (e: CancellationException) {
            withContext(NonCancellable + io) { end(process) }
            throw e
        }
    }

    private fun listen(process: Process): Int {
        try {
            process.inputStream.bufferedReader().useLines { it.forEach(::hear) }
        } catch (e: IOException) {
            hear(e.message ?: e.javaClass.simpleName) // it was killed
        }
        return process.waitFor()
    }

    /** It ends in order when its standard input does, and is killed if it does not. */
    private fun end(process: Process) {
        process.outputStream.close()
        if (!process.waitFor(STOPS_S, TimeUnit.SECONDS)) process.destroyForcibly()
    }

    private fun hear(line: String) {
        val before = last
        last = line.take(LINE_MOST)
        keepLine(last)
        when {
            READY in line -> now.value = NodeState.Running(nowNs())
            UNPAIRED in line -> {
                lacksKeys = true
                now.value = NodeState.Unpaired
            }
            AGAIN in line -> {
                if (!lacksKeys) now.value = NodeState.Failing(causeOf(line, before))
                lacksKeys = false
            }
        }
    }

    /** Why a part of it ended. One that ended itself has said why before; one that was killed has not. */
    private fun causeOf(line: String, before: String): String {
        val error = ERROR.find(line)?.groupValues?.get(1)?.replace("\\\"", "\"") ?: return before
        return if (EXITED in error) listOf(error, before).filter(String::isNotEmpty).joinToString("; ") else error
    }

    private fun keepLine(line: String) = synchronized(lines) {
        lines.addLast(line)
        if (lines.size > LINES_MOST) lines.removeFirst()
    }

    private companion object {
        // What the agent says: tests of node-agent/face and node-agent/supervise read these.
        const val READY = "node is ready"
        const val UNPAIRED = "this node is not paired yet"
        const val AGAIN = "process ended by itself"
        const val EXITED = "exit status"
        val ERROR = Regex("""error="((?:[^"\\]|\\.)+)"""")

        const val FIRST_MS = 1_000L
        const val LONGEST_MS = 60_000L
        const val STEADY_NS = 60_000_000_000L

        /** Longer than the agent gives its own parts (node-agent/cmd). */
        const val STOPS_S = 20L
        const val LINES_MOST = 200
        const val LINE_MOST = 500
    }
}
