package dev.fieldmesh.core.node

import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.PairingCode
import dev.fieldmesh.core.agent.Pin
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.withContext
import java.io.File
import java.io.IOException
import java.security.cert.CertificateException
import java.security.cert.CertificateFactory
import java.security.cert.X509Certificate

/** What a person and the phone say of this phone's node; [app] is the key by which the app is let in. */
data class NodeSetup(val name: String, val interfaceName: String, val app: Pin)

/**
 * The agent that makes this phone a node, without root: [programs] has it, and iperf3, as Android lays them out of
 * the app's file, and starts no others. All that it keeps is in [home], what it needs for a moment in [temporary].
 */
class OwnAgent(private val programs: File, private val home: File, private val temporary: File) {
    private val configuration = File(home, "agent.yaml")
    private val keys = File(home, "keys")

    /** Whether this app was built with the programs. */
    val isBuilt: Boolean get() = listOf(AGENT, IPERF3).all { File(programs, it).canExecute() }

    private val certificate = File(keys, "node.crt")

    /** Whether the node was paired with a controller. */
    val isPaired: Boolean get() = certificate.exists()

    /** Where the app reaches the node, and the node's key; null before it was paired with a controller. */
    val pairing: Pairing?
        get() = try {
            val own = certificate.inputStream().use {
                CertificateFactory.getInstance("X.509").generateCertificate(it) as X509Certificate
            }
            Pairing(Pairing.LOOPBACK, PORT, Pin.of(own))
        } catch (_: IOException) {
            null
        } catch (_: CertificateException) {
            null
        }

    /** @throws IOException when the phone's storage takes nothing */
    fun configure(setup: NodeSetup) {
        home.mkdirs()
        val text = """
            node: "${setup.name}"
            interface: "${setup.interfaceName}"
            listen: ":$PORT"
            privileges: none
            discovery: false
            gpsd: none
            state_dir: "$home/state"
            keys_dir: "$keys"
            app_key: "${setup.app.hex}"
            binaries: {iperf3: "$programs/$IPERF3"}
        """.trimIndent() + "\n"
        val new = File(home, "agent.yaml.new").apply { writeText(text) }
        if (!new.renameTo(configuration)) throw IOException("$configuration cannot be replaced")
    }

    /** Starts the node. It ends in order when its standard input does, as with the app. */
    fun up(): Process = start("up", "--until-eof")

    /** Makes the node known to the controller of a code, over [io]. Null when it is; else what the agent says. */
    suspend fun join(code: PairingCode, io: CoroutineDispatcher): String? = withContext(io) {
        try {
            val process = start("pair")
            try {
                process.outputStream.use { it.write("${code.typed}\n".toByteArray()) }
            } catch (_: IOException) {
                // It has ended before it read the code, and says why.
            }
            val said = process.inputStream.bufferedReader().readText().trim()
            val status = process.waitFor()
            if (status == 0) null else said.lines().last().ifEmpty { "the agent ended with status $status" }
        } catch (e: IOException) {
            e.message ?: e.javaClass.simpleName
        }
    }

    /** Ends the pairing with whichever controller. The node's records stay. */
    fun forget() {
        keys.deleteRecursively()
        File(home, "state/face/apps.json").delete()
    }

    private fun start(vararg words: String): Process {
        val command = listOf(File(programs, AGENT).path) + words + listOf("--config", configuration.path)
        return ProcessBuilder(command).directory(home).redirectErrorStream(true)
            .apply { environment()["TMPDIR"] = temporary.path }.start()
    }

    companion object {
        /** What Android takes for libraries it lays out as files, and lets an app start. */
        const val AGENT = "libfieldmesh_agent.so"
        const val IPERF3 = "libiperf3.so"

        /** The agent's default (protocols/wire). */
        private const val PORT = 7443

        /** A node's name out of what a phone or a person calls it; null when nothing of it can be in one. */
        fun nameOf(text: String): String? =
            text.lowercase().replace(Regex("[^a-z0-9]+"), "-").trim('-').take(NAME_MOST).trim('-').ifEmpty { null }

        /** The longest name of a key (internal/keys). */
        private const val NAME_MOST = 32
    }
}
