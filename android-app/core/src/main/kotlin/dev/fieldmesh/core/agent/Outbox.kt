package dev.fieldmesh.core.agent

import dev.fieldmesh.core.wire.Note
import dev.fieldmesh.core.wire.SpoolPosition
import dev.fieldmesh.core.wire.WireJson
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.delay
import kotlinx.coroutines.withTimeoutOrNull
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.SerializationException
import kotlinx.serialization.builtins.ListSerializer
import java.util.UUID

/** Where notes go. */
fun interface NoteSink {
    suspend fun note(note: Note): SpoolPosition
}

/** Keeps a text over the end of the process. */
interface Shelf {
    fun load(): String?
    fun save(text: String)
}

/** A note that waits, with the moment of the phone's boot clock at which it was made. */
@Serializable
data class WaitingNote(val note: Note, @SerialName("noted_boot_ns") val notedBootNs: Long)

/**
 * Notes on their way to the node. A note is on the shelf before it is sent and
 * until the node has it on its disk; sent twice it is one record, by its id.
 * Called from one thread.
 */
class Outbox(private val shelf: Shelf, private val nowNs: () -> Long) {
    private val waiting = ArrayDeque(load())
    private val woken = Channel<Unit>(Channel.CONFLATED)

    val pending: List<Note> get() = waiting.map { it.note }

    /** Takes a note; [make] gets an id of its own. */
    fun add(make: (id: String) -> Note): Note {
        val note = make(UUID.randomUUID().toString())
        waiting.addLast(WaitingNote(note, nowNs()))
        while (waiting.size > MOST) waiting.removeFirst()
        save()
        woken.trySend(Unit)
        return note
    }

    /**
     * Sends what waits, in its order, for as long as it is not cancelled. [sent] hears of each that the node has,
     * [refused] of each decision on a run that the node does not hold any more.
     */
    suspend fun deliver(sink: NoteSink, refused: (Note) -> Unit = {}, sent: (Note) -> Unit) {
        while (true) {
            val first = waiting.firstOrNull()
            if (first == null) {
                withTimeoutOrNull(IDLE_MS) { woken.receive() }
                continue
            }
            try {
                sink.note(first.note.copy(ageMs = age(first)))
                done(first)
                sent(first.note)
            } catch (e: AgentException.Refused) {
                when (e.error.code) {
                    "bad_request" -> done(first) // it never will be taken
                    "conflict" -> {
                        done(first)
                        refused(first.note)
                    }
                    else -> delay(RETRY_MS)
                }
            } catch (_: AgentException) {
                delay(RETRY_MS)
            }
        }
    }

    /**
     * The boot clock starts again with the phone; then the note is of before, and its age unknown but at
     * least this.
     */
    private fun age(w: WaitingNote): Double =
        ((nowNs() - w.notedBootNs).coerceAtLeast(0) / 1e6).coerceAtMost(MOST_AGE_MS)

    private fun done(w: WaitingNote) {
        waiting.remove(w)
        save()
    }

    private fun save() = shelf.save(WireJson.encodeToString(FORM, waiting.toList()))

    private fun load(): List<WaitingNote> = try {
        shelf.load()?.let { WireJson.decodeFromString(FORM, it) }.orEmpty()
    } catch (_: SerializationException) {
        emptyList()
    }

    private companion object {
        val FORM = ListSerializer(WaitingNote.serializer())
        const val MOST = 500
        const val IDLE_MS = 60_000L
        const val RETRY_MS = 2000L
        const val MOST_AGE_MS = 86_400_000.0
    }
}
