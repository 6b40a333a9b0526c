package dev.fieldmesh.core

import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.AttachmentSink
import dev.fieldmesh.core.agent.Attachments
import dev.fieldmesh.core.agent.AttachmentsWaiting
import dev.fieldmesh.core.wire.AttachmentHeld
import dev.fieldmesh.core.wire.AttachmentPut
import dev.fieldmesh.core.wire.WireError
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.launch
import kotlinx.coroutines.test.TestScope
import kotlinx.coroutines.test.advanceTimeBy
import kotlinx.coroutines.test.runTest
import java.io.File
import java.io.IOException
import java.nio.file.Files
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

    /** A node that keeps what it is given, and refuses or fails as [fault] says. */
    private class Node(val bytes: Int) : AttachmentSink {
        val held = java.io.ByteArrayOutputStream()
        val offsets = mutableListOf<Int>()
        var asked = 0
        var archived = false
        var fault: (offset: Int?) -> AgentException? = { null }

        private fun told() = AttachmentHeld("", bytes, held.size(), archived)

        override suspend fun attachment(sha256: String): AttachmentHeld {
            asked++
            fault(null)?.let { throw it }
            return told()
        }

        override suspend fun putAttachment(piece: AttachmentPut): AttachmentHeld {
            offsets += piece.offset
            fault(piece.offset)?.let { throw it }
            held.write(Base64.getDecoder().decode(piece.data))
            return told()
        }
    }

    private fun file(bytes: ByteArray) = File(folder, "new").apply { writeBytes(bytes) }

    private fun begin() = Attachments(File(folder, "waiting"))

    private fun TestScope.deliver(
        all: Attachments,
        node: Node,
        forMs: Long = 20_000,
        isMeasured: () -> Boolean = { false },
    ) {
        val job = launch { all.deliver(node, isMeasured) }
        advanceTimeBy(forMs)
        job.cancel()
    }

    private fun refused(code: String) = AgentException.Refused(WireError(code, "no"))

    @AfterTest
    fun clean() {
        folder.deleteRecursively()
    }

    @Test
    fun `a file goes on where it was cut, also after the end of the process`() = runTest {
        val attachment = begin().add(file(photo), "image/jpeg")
        assertEquals(150_000, attachment.bytes)
        val node = Node(photo.size)
        node.fault = { if (it == 49_152) AgentException.Unreachable(IOException("no route")) else null }
        deliver(begin(), node, 4000)
        node.fault = { null }
        val again = begin() // the process has ended in between
        assertEquals(AttachmentsWaiting(1), again.waiting.value)
        deliver(again, node)
        assertEquals(listOf(0, 49_152, 49_152, 98_304, 147_456), node.offsets)
        assertContentEquals(photo, node.held.toByteArray())
        assertEquals(AttachmentsWaiting(0), again.waiting.value)
        assertEquals(emptyList(), File(folder, "waiting").list().orEmpty().toList())
    }

    @Test
    fun `nothing is sent beside an attempt, by what the app knows, nor a piece by what the node knows`() = runTest {
        val all = begin()
        all.add(file(photo), "image/jpeg")
        val node = Node(photo.size)
        deliver(all, node) { true }
        assertEquals(0, node.asked)
        node.fault = { refused("busy") }
        deliver(all, node)
        assertEquals(emptyList(), node.offsets)
        var measured = false
        node.fault = { offset -> null.also { if (offset == 49_152) measured = true } } // armed in the middle
        deliver(all, node) { measured }
        assertEquals(listOf(0, 49_152), node.offsets)
        assertEquals(1, all.waiting.value.count)
        deliver(all, node)
        assertEquals(0, all.waiting.value.count)
    }

    @Test
    fun `a node without room is told of, and the file kept until there is`() = runTest {
        val all = begin()
        all.add(file(photo), "image/jpeg")
        val node = Node(photo.size)
        node.fault = { offset -> refused("disk_full").takeIf { offset != null } }
        deliver(all, node)
        assertEquals(AttachmentsWaiting(1, nodeIsFull = true), all.waiting.value)
        node.fault = { null }
        deliver(all, node)
        assertEquals(AttachmentsWaiting(0), all.waiting.value)
    }

    @Test
    fun `a file whose note is not there holds back no other`() = runTest {
        val all = begin()
        val first = all.add(file(photo), "image/jpeg")
        File(folder, "waiting/${first.sha256}").setLastModified(1000)
        all.add(file(byteArrayOf(1, 2, 3)), "audio/mp4")
        val node = object : AttachmentSink {
            override suspend fun attachment(sha256: String) =
                if (sha256 == first.sha256) throw refused("not_found") else AttachmentHeld(sha256, 3, 0, true)

            override suspend fun putAttachment(piece: AttachmentPut) = throw refused("internal")
        }
        val job = launch { all.deliver(node) { false } }
        advanceTimeBy(1000)
        job.cancel()
        assertEquals(listOf(first.sha256), File(folder, "waiting").list().orEmpty().toList())
    }

    @Test
    fun `what comes damaged is sent again, and not without an end`() = runTest {
        begin().add(file(photo), "image/jpeg")
        val all = begin()
        val node = Node(photo.size)
        val damaging = object : AttachmentSink by node {
            override suspend fun putAttachment(piece: AttachmentPut): AttachmentHeld {
                val held = node.putAttachment(piece)
                if (held.heldBytes < held.bytes) return held
                node.held.reset()
                return held.copy(heldBytes = 0)
            }
        }
        val job = launch { all.deliver(damaging) { false } }
        advanceTimeBy(1000)
        job.cancel()
        assertEquals(2, node.offsets.count { it == 0 })
        deliver(all, node)
        assertContentEquals(photo, node.held.toByteArray())
    }

    @Test
    fun `a file that no node takes is refused at once`() {
        for (bytes in listOf(ByteArray(0), ByteArray((2 shl 20) + 1))) {
            assertFailsWith<IOException> { begin().add(file(bytes), "image/jpeg") }
        }
    }
}
