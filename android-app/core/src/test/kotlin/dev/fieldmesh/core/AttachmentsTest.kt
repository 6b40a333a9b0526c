package dev.fieldmesh.core

import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.AttachmentSink
import dev.fieldmesh.core.agent.Attachments
import dev.fieldmesh.core.agent.AttachmentsWaiting
import dev.fieldmesh.core.agent.Clocks
import dev.fieldmesh.core.agent.Taken
import dev.fieldmesh.core.agent.UnusableException
import dev.fieldmesh.core.agent.WaitingNote
import dev.fieldmesh.core.wire.Attachment
import dev.fieldmesh.core.wire.AttachmentHeld
import dev.fieldmesh.core.wire.AttachmentPut
import dev.fieldmesh.core.wire.Note
import dev.fieldmesh.core.wire.SpoolPosition
import dev.fieldmesh.core.wire.WireError
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.test.TestScope
import kotlinx.coroutines.test.advanceTimeBy
import kotlinx.coroutines.test.currentTime
import kotlinx.coroutines.test.runTest
import java.io.ByteArrayOutputStream
import java.io.File
import java.io.IOException
import java.nio.file.Files
import java.security.MessageDigest
import java.util.Base64
import kotlin.random.Random
import kotlin.test.AfterTest
import kotlin.test.Test
import kotlin.test.assertContentEquals
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith

/** Files on their way to the node, in virtual time. */
@OptIn(ExperimentalCoroutinesApi::class)
class AttachmentsTest {
    private val folder = Files.createTempDirectory("attachments").toFile()
    private val photo = Random(1).nextBytes(150_000)

    private val left get() = folder.list().orEmpty().sorted()

    /** A node that knows of the files whose notes it has had. */
    private open class Node : AttachmentSink {
        val notes = mutableListOf<Note>()
        val held = mutableMapOf<String, ByteArrayOutputStream>()
        val offsets = mutableListOf<Int>()
        var asked = 0
        var fault: (offset: Int?) -> Exception? = { null }

        override suspend fun note(note: Note): SpoolPosition {
            notes += note
            return SpoolPosition("e", 1)
        }

        private fun told(sha256: String): AttachmentHeld {
            val named = notes.firstNotNullOfOrNull { n -> n.attachment?.takeIf { it.sha256 == sha256 } }
                ?: throw refused("not_found")
            return AttachmentHeld(sha256, named.bytes, held[sha256]?.size() ?: 0, false)
        }

        override suspend fun attachment(sha256: String): AttachmentHeld {
            asked++
            fault(null)?.let { throw it }
            return told(sha256)
        }

        override suspend fun putAttachment(piece: AttachmentPut): AttachmentHeld {
            offsets += piece.offset
            fault(piece.offset)?.let { throw it }
            held.getOrPut(piece.sha256, ::ByteArrayOutputStream).write(Base64.getDecoder().decode(piece.data))
            return told(piece.sha256)
        }
    }

    private fun begin() = Attachments(folder)

    private fun taken(id: String, mediaType: String = "image/jpeg") =
        Taken(WaitingNote(Note(id, "mark", "words", 0.0), 0, 0, 1), mediaType)

    /** A file that is as it is to be delivered; those that come later are newer. */
    private fun Attachments.take(id: String, bytes: ByteArray = photo): Note {
        val taken = taken(id)
        begin(taken)
        part(taken).writeBytes(bytes)
        close(taken)
        return ready(taken).note.also { File(folder, "$id.json").setLastModified(1000L * folder.list().orEmpty().size) }
    }

    private fun TestScope.deliver(
        all: Attachments,
        node: AttachmentSink,
        forMs: Long = 20_000,
        isMeasured: () -> Boolean = { false },
    ) {
        val clocks = Clocks({ currentTime * 1_000_000 }, { currentTime }, { 1 })
        val job = launch { all.deliver(node, clocks, isMeasured) }
        advanceTimeBy(forMs)
        job.cancel()
    }

    @AfterTest
    fun clean() {
        folder.deleteRecursively()
    }

    @Test
    fun `a file goes on where it was cut, also after the end of the process`() = runTest {
        val note = begin().take("1")
        val sum = MessageDigest.getInstance("SHA-256").digest(photo).joinToString("") { "%02x".format(it) }
        assertEquals(Attachment("image/jpeg", 150_000, sum), note.attachment)
        val node = Node()
        node.fault = { if (it == 49_152) AgentException.Unreachable(IOException("no route")) else null }
        deliver(begin(), node, 4000)
        node.fault = { null }
        val again = begin() // the process has ended in between
        assertEquals(AttachmentsWaiting(1), again.waiting.value)
        deliver(again, node)
        assertEquals(listOf(0, 49_152, 49_152, 98_304, 147_456), node.offsets)
        assertContentEquals(photo, node.held.values.single().toByteArray())
        assertEquals(AttachmentsWaiting(0), again.waiting.value)
        assertEquals(emptyList(), left)
    }

    @Test
    fun `each step is on the disk before the next`() {
        val taken = taken("1")
        begin().begin(taken)
        assertEquals(listOf(taken), begin().unready())
        begin().part(taken).writeBytes(photo)
        begin().sweep(setOf("1"))
        begin().close(taken)
        File(folder, "1.json.new").writeText("half a no")
        File(folder, "nobody").writeText("a file without a note")
        begin().sweep(emptySet())
        assertEquals(listOf("1", "1.json"), left)
        assertEquals(0, begin().waiting.value.count)
        begin().ready(taken)
        assertEquals(1, begin().waiting.value.count)
        assertEquals(emptyList(), begin().unready())
    }

    @Test
    fun `nothing is sent beside an attempt, by what the app knows, nor a piece by what the node knows`() = runTest {
        val all = begin()
        all.take("1")
        val node = Node()
        deliver(all, node) { true }
        assertEquals(0, node.asked)
        node.fault = { refused("busy") }
        deliver(all, node, 60_000)
        assertEquals(emptyList(), node.offsets)
        assertEquals(AttachmentsWaiting(1), all.waiting.value)
        var measured = false
        node.fault = { offset -> null.also { if (offset == 49_152) measured = true } } // armed in the middle
        deliver(all, node) { measured }
        assertEquals(listOf(0, 49_152), node.offsets)
        assertEquals(1, all.waiting.value.count)
        deliver(all, node)
        assertEquals(0, all.waiting.value.count)
    }

    @Test
    fun `the app says that a node has no room, and keeps the file until it has`() = runTest {
        val all = begin()
        all.take("1")
        val node = Node()
        node.fault = { offset -> refused("disk_full").takeIf { offset != null } }
        deliver(all, node, 60_000)
        assertEquals(AttachmentsWaiting(1, nodeIsFull = true), all.waiting.value)
        node.fault = { null }
        deliver(all, node)
        assertEquals(AttachmentsWaiting(0), all.waiting.value)
    }

    @Test
    fun `a node that does not know of a file gets its note, the same as another has had`() = runTest {
        val all = begin()
        val note = all.take("1")
        val node = Node()
        deliver(all, node)
        assertEquals(listOf(note), node.notes)
        assertEquals(listOf(note.attachment?.sha256), node.held.keys.toList())
    }

    @Test
    fun `the note of a file has its time in words for an agent that takes no age of more than a day`() = runTest {
        val all = begin()
        all.take("1")
        val old = object : Node() {
            override suspend fun note(note: Note): SpoolPosition {
                if (checkNotNull(note.ageMs) <= 8.64e7) return super.note(note)
                val why = "body.age_ms: 1.728e+08 is not within 0 to 8.64e+07"
                throw AgentException.Refused(WireError("bad_request", why))
            }
        }
        delay(172_800_000)
        deliver(all, old)
        assertEquals(listOf("words (noted 1970-01-01T00:00:00Z)"), old.notes.map { it.text })
        assertEquals(AttachmentsWaiting(0), all.waiting.value)
    }

    @Test
    fun `the app says that an agent is too old, and keeps file and note for a newer one`() = runTest {
        val all = begin()
        all.take("1")
        val before = left
        val old = object : Node() {
            override suspend fun note(note: Note) =
                throw AgentException.Refused(WireError("bad_request", "body: unknown field \"attachment\""))
        }
        deliver(all, old, 60_000)
        assertEquals(AttachmentsWaiting(1, nodeIsOld = true), all.waiting.value)
        assertEquals(before, left)
        deliver(all, Node())
        assertEquals(AttachmentsWaiting(0), all.waiting.value)
    }

    @Test
    fun `a file that is refused, or that cannot be read, is set aside, told of, and holds back no other`() = runTest {
        val all = begin()
        val bad = all.take("1").attachment!!.sha256
        all.take("2", byteArrayOf(1, 2))
        File(folder, "2").delete()
        all.take("3", byteArrayOf(1, 2, 3))
        val node = object : Node() {
            override suspend fun attachment(sha256: String) =
                if (sha256 == bad) throw refused("internal") else super.attachment(sha256)
        }
        deliver(all, node, 1000)
        assertEquals(3, node.held.values.single().size())
        deliver(all, node, 60_000)
        assertEquals(AttachmentsWaiting(2, refused = 2), all.waiting.value)
        assertEquals(listOf("1", "1.json", "2.json"), left)
        deliver(begin(), Node())
        assertEquals(listOf("2.json"), left)
    }

    @Test
    fun `what comes damaged is sent again, and not without an end`() = runTest {
        begin().take("1")
        val all = begin()
        val node = Node()
        val damaging = object : AttachmentSink by node {
            override suspend fun putAttachment(piece: AttachmentPut): AttachmentHeld {
                val held = node.putAttachment(piece)
                if (held.heldBytes < held.bytes) return held
                node.held.clear()
                return held.copy(heldBytes = 0)
            }
        }
        deliver(all, damaging, 1000)
        assertEquals(2, node.offsets.count { it == 0 })
        deliver(all, node)
        assertContentEquals(photo, node.held.values.single().toByteArray())
    }

    @Test
    fun `a file that no node takes is refused at once`() {
        for (bytes in listOf(ByteArray(0), ByteArray((2 shl 20) + 1))) {
            assertFailsWith<UnusableException> { begin().take("1", bytes) }
        }
    }

    private companion object {
        fun refused(code: String) = AgentException.Refused(WireError(code, "no"))
    }
}
