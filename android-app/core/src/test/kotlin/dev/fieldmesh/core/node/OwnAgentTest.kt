package dev.fieldmesh.core.node

import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.newIdentity
import dev.fieldmesh.core.pem
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.Rule
import org.junit.rules.TemporaryFolder
import java.io.File
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertIs
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

/** The agent in these tests is a shell's script that says what an agent says. */
class OwnAgentTest {
    @get:Rule
    val folder = TemporaryFolder()

    private val programs by lazy { folder.newFolder("programs") }
    private val home by lazy { File(folder.root, "node") }
    private val agent by lazy { OwnAgent(programs, home, folder.newFolder("tmp")) }
    private val keeper = NodeKeeper(System::nanoTime, Dispatchers.IO)
    private val setup = NodeSetup("pixel-7", "wlan0", Pin("ab".repeat(32)))

    private fun put(script: String) {
        for (name in listOf(OwnAgent.AGENT, OwnAgent.IPERF3)) {
            File(programs, name).apply { writeText("#!/bin/sh\n$script\n") }.setExecutable(true)
        }
        agent.configure(setup)
    }

    private suspend fun awaits(reached: (NodeState) -> Boolean): NodeState =
        withTimeout(30_000) { keeper.state.first(reached) }

    @Test
    fun `what the agent is started with`() {
        put("echo \"\$@ \$TMPDIR\"; exit 0")
        val said = agent.up().inputStream.reader().readText().trim()
        assertEquals("up --until-eof --config $home/agent.yaml ${folder.root}/tmp", said)
        assertEquals(
            """
            node: "pixel-7"
            interface: "wlan0"
            listen: ":7443"
            privileges: none
            discovery: false
            gpsd: none
            state_dir: "$home/state"
            keys_dir: "$home/keys"
            app_key: "${"ab".repeat(32)}"
            binaries: {iperf3: "$programs/libiperf3.so"}
            """.trimIndent() + "\n",
            File(home, "agent.yaml").readText(),
        )
    }

    @Test
    fun `a build without the programs says so`() {
        assertFalse(agent.isBuilt)
        put("exit 0")
        assertTrue(agent.isBuilt)
        File(programs, OwnAgent.IPERF3).delete()
        assertFalse(agent.isBuilt)
    }

    @Test
    fun `it runs until it is not wanted any more, and ends in order then`() = runBlocking {
        put("echo 'msg=\"node is ready\"'; cat >/dev/null; echo in order >'$home/end'")
        val being = launch { keeper.keep(agent::up) }
        assertIs<NodeState.Running>(awaits { it is NodeState.Running })
        being.cancelAndJoin()
        assertEquals(NodeState.Off, keeper.state.value)
        assertEquals("in order\n", File(home, "end").readText())
    }

    @Test
    fun `one that ends is started again, and its last word is told`() = runBlocking {
        put("echo begun >>'$home/lives'; seq 1000; echo port 7443 is in use; exit 1")
        val being = launch { keeper.keep(agent::up) }
        val failing = assertIs<NodeState.Failing>(awaits { it is NodeState.Failing })
        assertEquals("port 7443 is in use" to 1, failing.said to failing.status)
        assertNull(failing.signal)
        withTimeout(30_000) { keeper.state.first { File(home, "lives").readLines().size >= 2 } }
        assertEquals(200, keeper.said.size, "of what it says there is kept a part")
        being.cancelAndJoin()
    }

    @Test
    fun `one that a signal ends is told by it, and not by what a former life said`() = runBlocking {
        put("[ -e begun ] && kill -KILL $$; touch begun; echo 'msg=\"node is ready\"'; exit 1")
        val being = launch { keeper.keep(agent::up) }
        awaits { it is NodeState.Failing && it.status == 1 }
        val killed = assertIs<NodeState.Failing>(awaits { it is NodeState.Failing && it.status != 1 })
        assertEquals("" to 9, killed.said to killed.signal)
        assertEquals(
            listOf("msg=\"node is ready\"", "The app: it ended with status 1.", "The app: it ended with status 137."),
            keeper.said,
        )
        being.cancelAndJoin()
    }

    private fun partEnds(error: String) =
        "echo 'msg=\"process ended by itself; it is started again\" process=face error=\"$error\" after=1s'"

    @Test
    fun `a part of it that ends is told too, with why, until it is ready`() = runBlocking {
        put(
            """
            echo the disk is full
            ${partEnds("face ended with exit status 1")}
            read next
            echo 'msg="node is ready"'
            ${partEnds("face ended with signal: killed")}
            read next
            echo 'msg="node is ready"'
            cat >/dev/null
            """.trimIndent(),
        )
        var process: Process? = null
        fun goOn() = process?.outputStream?.apply { write('\n'.code) }?.flush()
        val being = launch { keeper.keep { agent.up().also { process = it } } }
        val full = NodeState.Failing("face ended with exit status 1; the disk is full")
        assertEquals(full, awaits { it is NodeState.Failing })
        goOn()
        val killed = NodeState.Failing("face ended with signal: killed")
        assertEquals(killed, awaits { it is NodeState.Failing && it != full })
        goOn()
        awaits { it is NodeState.Running }
        being.cancelAndJoin()
    }

    @Test
    fun `one that has its keys by now is not said to wait for them`() = runBlocking {
        put(
            """
            echo 'fieldmesh-agent: this node is not paired yet: there is no node.key'
            ${partEnds("face ended with exit status 1")}
            read next
            echo no memory
            ${partEnds("face ended with exit status 2")}
            cat >/dev/null
            """.trimIndent(),
        )
        var process: Process? = null
        val being = launch { keeper.keep { agent.up().also { process = it } } }
        awaits { it == NodeState.Unpaired }
        process?.outputStream?.apply { write('\n'.code) }?.flush()
        val failing = assertIs<NodeState.Failing>(awaits { it is NodeState.Failing })
        assertEquals("face ended with exit status 2; no memory", failing.said)
        being.cancelAndJoin()
    }

    @Test
    fun `one that ends before it reads a code says why`() = runBlocking {
        put("exec <&-; echo 'the disk is full'; exit 1")
        assertEquals("the disk is full", agent.join(code, Dispatchers.IO))
        put("exec <&-; exit 3")
        assertEquals("the agent ended with status 3", agent.join(code, Dispatchers.IO))
    }

    private val code by lazy {
        val letters = "AAAQEAYEAUDAOCAJBIFQYDIOB4ASGRLHRGV433YBENCWPCNLZXXXATD3"
        assertNotNull(PairingCode.parse("fieldmesh-pair/127.0.0.1:1/$letters"))
    }

    @Test
    fun `one that cannot be started is told`() = runBlocking {
        put("exit 0")
        File(programs, OwnAgent.AGENT).setExecutable(false)
        val being = launch { keeper.keep(agent::up) }
        val failing = assertIs<NodeState.Failing>(awaits { it is NodeState.Failing })
        assertTrue("Permission denied" in failing.said, failing.said)
        being.cancelAndJoin()
    }

    @Test
    fun `it waits for its keys, is paired by a code, and forgets it`() = runBlocking {
        val own = newIdentity("node")
        File(folder.root, "node.crt").writeText(own.pem)
        put(
            """
            case ${'$'}1 in
            up) echo 'fieldmesh-agent: this node is not paired yet: there is no node.key'
                echo 'msg="process ended by itself; it is started again"'; cat >/dev/null ;;
            pair) read code; case ${'$'}code in FIELDMESH-PAIR/127.0.0.1:1/*) ;; *) exit 2 ;; esac
                [ ! -e keys ] || { echo 'this node is paired already'; exit 1; }
                mkdir keys; cp ../node.crt keys; echo paired ;;
            esac
            """.trimIndent(),
        )
        val being = launch { keeper.keep(agent::up) }
        awaits { it == NodeState.Unpaired }
        assertNull(agent.pairing)
        assertFalse(agent.isPaired)
        assertNull(agent.join(code, Dispatchers.IO))
        assertEquals(Pairing("127.0.0.1", 7443, own.pin), agent.pairing)
        assertTrue(agent.isPaired)
        assertEquals("this node is paired already", agent.join(code, Dispatchers.IO))
        agent.forget()
        assertNull(agent.pairing)
        being.cancelAndJoin()
    }

    @Test
    fun `a name of a node is made of any other`() {
        val names = mapOf(
            "Pixel 7 Pro" to "pixel-7-pro",
            "SM-G991B" to "sm-g991b",
            "  Änne's " to "nne-s",
            "x".repeat(31) + " y" to "x".repeat(31),
            "…" to null,
        )
        for ((text, name) in names) assertEquals(name, OwnAgent.nameOf(text), text)
    }
}
