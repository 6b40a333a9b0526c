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
import java.time.Instant
import java.time.temporal.ChronoUnit
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

/** What tells a note's age: the phone's clock since it booted, its clock of the day, and which boot it is. */
class Clocks(val bootNs: () -> Long, val utcMs: () -> Long, val boot: () -> Int) {
    /**
     * By the clock since boot; for a note of before, by the clock of the day, and not less than since boot. Beyond what
     * a node takes it is absent: most likely a clock was wrong.
     */
    fun ageMs(w: WaitingNote): Double? {
        val nowNs = bootNs()
        val ageMs = if (w.notedBoot == boot()) {
            (nowNs - w.notedBootNs) / 1e6
        } else {
            maxOf(w.notedUtcMs?.let { utcMs() - it }?.toDouble() ?: 0.0, nowNs / 1e6)
        }
        return ageMs.coerceAtLeast(0.0).takeIf { it <= MOST_AGE_MS }
    }

    private companion object {
        /** `maxNoteAgeMs` in protocols/wire. */
        const val MOST_AGE_MS = 31 * DAY_MS
    }
}

/**
 * Gives the node a note with its age. An older agent takes no age of more than a day: it gets that, and the true time
 * in words.
 */
internal suspend fun NoteSink.give(w: WaitingNote, clocks: Clocks) {
    val ageMs = clocks.ageMs(w)
    try {
        note(w.note.copy(ageMs = ageMs))
    } catch (e: AgentException.Refused) {
        val isTooOld = e.error.code == "bad_request" && "age_ms" in e.error.message
        if (!isTooOld || ageMs == null || ageMs <= DAY_MS) throw e
        val noted = Instant.ofEpochMilli(clocks.utcMs() - ageMs.toLong()).truncatedTo(ChronoUnit.SECONDS)
        val word = " (noted $noted)"
        note(w.note.copy(ageMs = DAY_MS, text = w.note.text.take(MOST_TEXT - word.length) + word))
    }
}

private const val DAY_MS = 86_400_000.0

/** `maxReasonRunes` in protocols/wire. */
private const val MOST_TEXT = 2000

/** Whether an older agent has refused a note only because it has a file with it. */
internal val AgentException.Refused.isOfOlderNode get() =
    error.code == "bad_request" && "attachment" in error.message

/**
 * A note that waits, with the moment at which it was made. A former app told its time since boot only: its notes are
 * taken to be as old as this boot.
 */
@Serializable
data class WaitingNote(
    val note: Note,
    @SerialName("noted_boot_ns") val notedBootNs: Long,
    @SerialName("noted_utc_ms") val notedUtcMs: Long? = null,
    @SerialName("noted_boot") val notedBoot: Int? = null,
)

/**
 * Notes on their way to the node. A note is on the shelf before it is sent and
 * until the node has it on its disk; sent twice it is one record, by its id.
 * Called from one thread.
 */
class Outbox(private val shelf: Shelf, private val clocks: Clocks) {
    private val waiting = ArrayDeque(load())
    private val woken = Channel<Unit>(Channel.CONFLATED)

    val pending: List<Note> get() = waiting.map { it.note }

    /** Takes a note; [make] gets an id of its own. */
    fun add(make: (id: String) -> Note): Note = add(begin(make))

    /** A note of this moment; [add] takes it once its file is there. */
    fun begin(make: (id: String) -> Note) =
        WaitingNote(make(UUID.randomUUID().toString()), clocks.bootNs(), clocks.utcMs(), clocks.boot())

    fun add(noted: WaitingNote): Note {
        waiting.addLast(noted)
        while (waiting.size > MOST) waiting.removeFirst()
        save()
        woken.trySend(Unit)
        return noted.note
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
                sink.give(first, clocks)
                done(first)
                sent(first.note)
            } catch (e: AgentException.Refused) {
                when {
                    first.note.attachment != null && e.isOfOlderNode -> wordsAlone(first)
                    e.error.code == "bad_request" -> done(first) // it never will be taken
                    e.error.code == "conflict" -> {
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

    /** An older agent is to have the words now; the file waits with its note, for a newer one. */
    private fun wordsAlone(w: WaitingNote) {
        waiting[waiting.indexOf(w)] = w.copy(note = w.note.copy(attachment = null))
        save()
    }

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
    }
}
