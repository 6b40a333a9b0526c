package dev.fieldmesh.device

import dev.fieldmesh.core.agent.Admission
import dev.fieldmesh.core.agent.AgentClient
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.Caller
import dev.fieldmesh.core.agent.Clocks
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.agent.Outbox
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.Seeker
import dev.fieldmesh.core.agent.WaitingNote
import dev.fieldmesh.core.agent.WiFiFound
import dev.fieldmesh.core.agent.pushFixes
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.app.Instrument
import dev.fieldmesh.core.app.MARK
import dev.fieldmesh.core.app.Mark
import dev.fieldmesh.core.drive.LinkState
import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.wire.AbortRequest
import dev.fieldmesh.core.wire.Event
import dev.fieldmesh.core.wire.Note
import dev.fieldmesh.core.wire.RestoreReport
import dev.fieldmesh.core.wire.TrialKey
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.channels.BufferOverflow
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.SharedFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asSharedFlow
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.receiveAsFlow
import kotlinx.coroutines.launch
import java.io.IOException

/**
 * The app's work as long as its process lives, whatever screens come and go:
 * it follows the paired node, takes the receiver's fixes, and speaks. All of it
 * happens on [scope]'s one thread but for the network, which is [caller]'s.
 */
class Session(
    private val scope: CoroutineScope,
    private val preferences: Preferences,
    private val caller: Caller,
    private val clocks: Clocks,
    private val log: PhoneLog,
    voice: Voice,
    private val lastEnd: () -> String?,
    private val follow: (AgentClient) -> Flow<Heard>,
) {
    private val nowNs = clocks.bootNs
    private val instrument = Instrument(nowNs, voice::say)
    private val outbox = Outbox(preferences.notes, clocks)
    private val received =
        MutableSharedFlow<Fix>(replay = 1, extraBufferCapacity = 64, onBufferOverflow = BufferOverflow.DROP_OLDEST)
    private var client: AgentClient? = null
    private var following: Job? = null

    val state: StateFlow<AppState> get() = instrument.state
    val fixes: SharedFlow<Fix> = received.asSharedFlow()
    val pairing: Pairing? get() = preferences.pairing

    fun start() {
        scope.launch {
            while (true) {
                instrument.refresh()
                delay(REFRESH_MS)
            }
        }
        preferences.pairing?.let(::begin)
    }

    fun pair(with: Pairing) {
        if (with != pairing) unpair() // what one node told is not shown as another's
        preferences.pairing = with
        begin(with)
    }

    /** Lets the controller of a code know this phone's key; what it is admitted to then. */
    suspend fun join(code: PairingCode): Admission = caller.join(code)

    fun unpair() {
        following?.cancel()
        client = null
        preferences.pairing = null
        instrument.unpaired()
    }

    /** Whether the phone keeps what it receives. */
    var logging: Boolean
        get() = preferences.logging
        set(on) {
            preferences.logging = on
            goesOn = false
            logFault = if (on) null else endLog()
        }

    /** Why the last lines could not be written; null when they were. */
    private fun endLog(): String? = try {
        log.end()
        null
    } catch (e: IOException) {
        told(e)
    }

    private fun told(e: IOException) = e.message ?: e.javaClass.simpleName

    /** Whether the log is to say yet that a process ended in the middle of it. */
    private var goesOn = preferences.logging

    /** Why the log ended by itself, as the phone's storage said it. */
    var logFault: String? = null
        private set

    fun heard(found: WiFiFound) = keep { log.add(found.look.bootNs, found.toRecord()) }

    /** The receiver is read, or is not any more. */
    fun receiving(on: Boolean) = keep {
        log.add(nowNs(), if (on) Event("info", "GPS: it is read") else Event("warning", "GPS: it is not read any more"))
    }

    /** A full storage ends the log, and nothing else. */
    private fun keep(write: () -> Unit) {
        if (!logging) return
        try {
            if (goesOn) log.add(nowNs(), Event("warning", "log: goes on after the app ended" + why(lastEnd())))
            goesOn = false
            write()
        } catch (e: IOException) {
            preferences.logging = false
            endLog() // the next one has a file of its own
            logFault = told(e)
        }
    }

    private fun why(reason: String?) = reason?.let { ": $it" }.orEmpty()

    fun take(fix: Fix) {
        keep { log.add(fix) }
        received.tryEmit(fix)
        instrument.fix(fix)
    }

    /** Ends an attempt that is under way. False when the node has not said that it did. */
    suspend fun abort(run: String, of: TrialKey, reason: String): Boolean =
        tell { abort(run, AbortRequest(of.trial, of.attempt, reason)) } != null

    /** Puts the node back as it was. Null when it could not be told. */
    suspend fun restore(): RestoreReport? = tell { restore() }

    /** What the experimenter saw. */
    fun mark(text: String) {
        instrument.mark(outbox.add(noted(text)).toMark(saved = false))
    }

    /** What is seen now, whose photo or recording comes later: then [attached] has it as a mark. */
    fun begin(text: String): WaitingNote = outbox.begin(noted(text))

    fun attached(noted: WaitingNote) = instrument.mark(outbox.add(noted).toMark(saved = false))

    /** A note of this moment and place. */
    private fun noted(text: String): (id: String) -> Note {
        val now = state.value
        val fix = received.replayCache.lastOrNull()?.takeIf { it.hasPosition && nowNs() - it.bootNs <= PLACE_NS }
        return { id -> now.mark(id, text, fix) }
    }

    /** What the experimenter decides on a run's trial: accept, repeat or skip. */
    fun decide(decision: String, run: String, trial: Int, attempt: Int?, reason: String) {
        outbox.add { id -> Note(id, decision, reason, null, run, trial, attempt) }
    }

    private val tooLate = Channel<Note>(Channel.UNLIMITED)

    /** Decisions that the node refused because it holds another run by now; each is told once. */
    val refused: Flow<Note> = tooLate.receiveAsFlow()

    private suspend fun <T> tell(call: suspend AgentClient.() -> T): T? = try {
        client?.call()
    } catch (_: AgentException) {
        null // the link's state says why
    }

    private fun begin(with: Pairing) {
        following?.cancel()
        val node = try {
            caller.client(with)
        } catch (_: AgentException.NoKey) {
            return // the Pair screen shows that there is no key
        }
        client = node
        instrument.connecting()
        outbox.pending.filter { it.note == MARK }.forEach { instrument.mark(it.toMark(saved = false)) }
        following = scope.launch {
            launch { follow(node).collect(instrument::heard) }
            launch { pushFixes(fixes, node, nowNs, instrument::pushed) }
            launch { caller.seek(with, away, ::moved) }
            launch(Dispatchers.IO) {
                preferences.attachments.deliver(node, clocks) { Seeker.mayMeasure(state.value.drive, nowNs()) }
            }
            launch { outbox.deliver(node, tooLate::trySend) { if (it.note == MARK) saved(it) } }
        }
    }

    /** Whether the node is not where it is called. */
    private val away = state.map { it.drive.link in AWAY }

    private fun moved(to: Pairing) {
        preferences.pairing = to
        begin(to)
    }

    private fun saved(mark: Note) = instrument.mark(mark.toMark(saved = true))

    private fun Note.toMark(saved: Boolean) = Mark(id, text, latDeg, lonDeg, saved)

    private companion object {
        const val REFRESH_MS = 200L
        val AWAY = setOf(LinkState.LOST, LinkState.WRONG_NODE)

        /** An older fix does not say where a note is made. */
        const val PLACE_NS = 3_000_000_000L
    }
}
