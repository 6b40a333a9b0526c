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

    /** It ended by itself and is started again; [said] is the last that it said. */
    data class Failing(val said: String) : NodeState
}

/** Keeps a node's agent running: what it says is read, and when it ends by itself it is started again, ever later. */
class NodeKeeper(private val nowNs: () -> Long, private val io: CoroutineDispatcher) {
    private val now = MutableStateFlow<NodeState>(NodeState.Off)
    private val one = Mutex()
    private val lines = ArrayDeque<String>()

    val state: StateFlow<NodeState> = now.asStateFlow()

    /** The newest of what it said. */
    val said: List<String> get() = synchronized(lines) { lines.toList() }

    /** Goes on until it is cancelled. The agent is ended in order then, and another begins after that. */
    suspend fun keep(start: () -> Process) = one.withLock {
        try {
            var wait = FIRST_MS
            while (true) {
                now.value = NodeState.Starting
                val begun = nowNs()
                live(start)
                if (nowNs() - begun >= STEADY_NS) wait = FIRST_MS
                now.value = NodeState.Failing(said.lastOrNull().orEmpty())
                delay(wait)
                wait = minOf(2 * wait, LONGEST_MS)
            }
        } finally {
            now.value = NodeState.Off
        }
    }

    /** One life of the agent; it returns when that ends by itself. */
    private suspend fun live(start: () -> Process) = coroutineScope {
        val process = try {
            withContext(NonCancellable + io) { start() } // one that has begun is not lost
        } catch (e: IOException) {
            return@coroutineScope hear(e.message ?: e.javaClass.simpleName)
        }
        val reading = async(io) { listen(process) }
        try {
            reading.await()
        } catch (e: CancellationException) {
            withContext(NonCancellable + io) { end(process) }
            throw e
        }
    }

    private fun listen(process: Process) {
        try {
            process.inputStream.bufferedReader().useLines { it.forEach(::hear) }
        } catch (e: IOException) {
            hear(e.message ?: e.javaClass.simpleName) // it was killed
        }
        process.waitFor()
    }

    /** It ends in order when its standard input does, and is killed if it does not. */
    private fun end(process: Process) {
        process.outputStream.close()
        if (!process.waitFor(STOPS_S, TimeUnit.SECONDS)) process.destroyForcibly()
    }

    private fun hear(line: String) {
        val before = said.lastOrNull().orEmpty()
        synchronized(lines) {
            lines.addLast(line.take(LINE_MOST))
            if (lines.size > LINES_MOST) lines.removeFirst()
        }
        when {
            UNPAIRED in line -> now.value = NodeState.Unpaired
            READY in line -> now.value = NodeState.Running(nowNs())
            AGAIN in line && now.value != NodeState.Unpaired -> now.value = NodeState.Failing(before)
        }
    }

    private companion object {
        // What the agent says (node-agent/face, node-agent/supervise); a test holds a real one to it.
        const val READY = "node is ready"
        const val UNPAIRED = "this node is not paired yet"
        const val AGAIN = "process ended by itself"

        const val FIRST_MS = 1_000L
        const val LONGEST_MS = 60_000L
        const val STEADY_NS = 60_000_000_000L

        /** Longer than the agent gives its own parts (node-agent/cmd). */
        const val STOPS_S = 20L
        const val LINES_MOST = 200
        const val LINE_MOST = 500
    }
}
